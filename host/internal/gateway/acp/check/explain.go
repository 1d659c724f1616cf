package check

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"skep/host/internal/gateway/acp/dsl"
)

// Explain returns why a text is no message of a record, nil when it is one. The reason begins
// with the one of [Message]. It adds the line and column at which a text is no JSON, the name
// of a member that is there twice, and the other fields that a record lacks.
func Explain(root *dsl.Type, text []byte) error {
	v, err := parseText(text)
	switch err {
	case nil:
	case errJSON:
		return cmp.Or(Syntax(text), err)
	case errUTF8:
		return notUTF8(text)
	case errTwice:
		return fmt.Errorf("%w: %s", errTwice, repeated(root.Name, &v))
	default:
		return err
	}
	c := &checker{extra: map[string]json.RawMessage{}, explains: true}
	r := &reader{path: []step{{name: root.Name}}}
	c.read(r, &v, root)
	return r.err
}

// notUTF8 returns where a text is not UTF-8.
func notUTF8(text []byte) error {
	err := fmt.Errorf("%w: %s", errUTF8, position(text, invalidByte(text)))
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) { // https://www.unicode.org/faq/utf_bom.html#bom4
		err = fmt.Errorf("%w: it begins as UTF-16 does", err)
	}
	return err
}

// Syntax returns why and where a text is no JSON, nil where it is. It makes no values.
func Syntax(text []byte) error {
	if !utf8.Valid(text) {
		return notUTF8(text) // whatever is wrong besides: its characters are not those that were written
	}
	if bytes.HasPrefix(text, []byte("\ufeff")) { // https://www.rfc-editor.org/rfc/rfc8259#section-8.1
		return fmt.Errorf("%w: line 1, column 1: it begins with a byte order mark", errJSON)
	}
	var syntax *json.SyntaxError
	if json.Valid(text) || !errors.As(json.Unmarshal(text, new(any)), &syntax) {
		return nil
	}
	return fmt.Errorf("%w: %s: %w", errJSON, position(text, int(syntax.Offset)-1), syntax)
}

// position writes the place of a byte; both numbers begin at 1, the column counts characters.
func position(text []byte, offset int) string {
	before := text[:min(max(offset, 0), len(text))]
	line := bytes.LastIndexByte(before, '\n') + 1
	return fmt.Sprintf("line %d, column %d", 1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(before[line:]))
}

// invalidByte is the offset of the first byte that is not UTF-8.
func invalidByte(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(text)
}

// shownName is how many characters of a name in a message a reason shows.
const shownName = 60

// isNoPart reports whether a character is none of a name that a place shows without quotes.
func isNoPart(r rune) bool {
	return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// repeated names the member at which a text ended because it is there twice, and the object
// that has it: all that was read after it is the last part of what it is in.
func repeated(root string, v *value) string {
	path := []step{{name: root}}
	for {
		switch items, members := len(v.items), len(v.members); {
		case items > 0:
			path = append(path, step{index: items - 1})
			v = &v.items[items-1]
		case members == 0:
			return place(path)
		default:
			last := &v.members[members-1]
			if find(v, last.name) != &last.value {
				return fmt.Sprintf("%.*q in %s", shownName, last.name, place(path))
			}
			name := fmt.Sprintf("%.*s", shownName, last.name)
			path = append(path, step{name: name, key: name == "" || strings.ContainsFunc(name, isNoPart)})
			v = &last.value
		}
	}
}

// listMissing adds the other fields that a record lacks to the reason that names the first.
func (r *reader) listMissing(v *value, fields []dsl.Field) {
	var names []string
	for _, f := range fields {
		if !f.Optional && find(v, f.Name) == nil {
			names = append(names, f.Name)
		}
	}
	if len(names) < 2 || r.err.Error() != place(r.path)+"."+names[0]+": is missing" {
		return
	}
	r.err = fmt.Errorf("%w, as %s", r.err, joined(names[1:]))
}

// joined lists names with their verb.
func joined(names []string) string {
	if len(names) == 1 {
		return "is " + names[0]
	}
	last := len(names) - 1
	return "are " + strings.Join(names[:last], ", ") + " and " + names[last]
}
