package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xeipuuv/gojsonschema"

	"skep/spec/mail"
)

// Faults are the reasons for which a document does not have its shape, in the
// order of their paths. There is at least one.
type Faults []*mail.FieldError

// maxShown bounds the length of an error text.
const maxShown = 4

// Error returns the first faults as "path: reason", separated by "; ".
func (f Faults) Error() string {
	var b strings.Builder
	for i, e := range f {
		if i == maxShown {
			fmt.Fprintf(&b, "; and %d more", len(f)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(e.Error())
	}
	return b.String()
}

// Unwrap lets errors.As find the single faults.
func (f Faults) Unwrap() []error {
	errs := make([]error, len(f))
	for i, e := range f {
		errs[i] = e
	}
	return errs
}

// faults turns the library's findings into ours. Findings that only refer
// to other findings are left out, and none quotes the document.
func faults(found []gojsonschema.ResultError) error {
	var all Faults
	for _, e := range found {
		switch e.(type) {
		case *gojsonschema.NumberAllOfError, *gojsonschema.ConditionThenError:
		default:
			all = append(all, &mail.FieldError{Path: path(e), Reason: reason(e)})
		}
	}
	if len(all) == 0 {
		return errors.New("does not have the required shape")
	}
	slices.SortFunc(all, func(a, b *mail.FieldError) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Reason, b.Reason))
	})
	return slices.CompactFunc(all, func(a, b *mail.FieldError) bool { return *a == *b })
}

// path spells the place as package mail does. Only keys that a schema names are
// ever descended into, so a step of digits is an index.
func path(e gojsonschema.ResultError) string {
	const sep = "\x00"
	var p string
	for _, s := range strings.Split(e.Context().String(sep), sep)[1:] { // without "(root)"
		if strings.Trim(s, "0123456789") == "" {
			p += "[" + s + "]"
		} else {
			p = mail.JoinPath(p, s)
		}
	}
	switch e.(type) {
	case *gojsonschema.RequiredError, *gojsonschema.AdditionalPropertyNotAllowedError:
		key, _ := e.Details()["property"].(string)
		return mail.JoinPath(p, mail.PathKey(key))
	}
	return p
}

func reason(e gojsonschema.ResultError) string {
	d := e.Details()
	switch e.(type) {
	case *gojsonschema.RequiredError:
		return "is missing"
	case *gojsonschema.AdditionalPropertyNotAllowedError:
		return "is not a known key"
	case *gojsonschema.InvalidTypeError:
		return fmt.Sprintf("must be %s, not %s", types(d["expected"]), types(d["given"]))
	case *gojsonschema.EnumError:
		return fmt.Sprintf("must be one of %v", d["allowed"])
	case *gojsonschema.DoesNotMatchFormatError:
		name, _ := d["format"].(string)
		return formats[strings.TrimPrefix(name, formatPrefix)].reason
	case *gojsonschema.StringLengthGTEError:
		return atLeast(d["min"], "characters")
	case *gojsonschema.StringLengthLTEError:
		return fmt.Sprintf("must have at most %v characters", d["max"])
	case *gojsonschema.NumberGTEError:
		return fmt.Sprintf("must be %v or more", d["min"])
	case *gojsonschema.NumberLTEError:
		return fmt.Sprintf("must be at most %v", d["max"])
	case *gojsonschema.NumberGTError:
		return fmt.Sprintf("must be more than %v", d["min"])
	case *gojsonschema.NumberLTError:
		return fmt.Sprintf("must be less than %v", d["max"])
	case *gojsonschema.ArrayMinItemsError:
		return atLeast(d["min"], "entries")
	case *gojsonschema.ArrayMaxItemsError:
		return fmt.Sprintf("must have at most %v entries", d["max"])
	}
	return e.Description()
}

func atLeast(n any, what string) string {
	if n == 1 {
		return "must not be empty"
	}
	return fmt.Sprintf("must have at least %v %s", n, what)
}

// types writes the library's list of type names, such as "[string,null]".
func types(v any) string {
	names := strings.Split(strings.Trim(fmt.Sprint(v), "[]"), ",")
	for i, n := range names {
		switch n = strings.TrimSpace(n); n {
		case "null":
		case "array", "object":
			n = "an " + n
		case "integer", "number":
			n = "a number"
		default:
			n = "a " + n
		}
		names[i] = n
	}
	return strings.Join(names, " or ")
}
