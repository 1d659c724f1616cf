package openapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Request returns what is wrong with a request of an operation: a parameter or the
// body. path and body are as they are sent; vars are [Document.Find]'s.
func (d *Document) Request(o *Operation, u *url.URL, vars map[string]string, header http.Header, body []byte) error {
	at := pointer(o)
	parameters, _ := o.Spec["parameters"].([]any)
	for i, p := range parameters {
		if err := d.parameter(p, fmt.Sprintf("%s/parameters/%d", at, i), u, vars, header); err != nil {
			return err
		}
	}
	wanted, _ := d.Dig(o.Spec, "requestBody").(map[string]any)
	switch {
	case wanted == nil || len(body) == 0 && wanted["required"] != true:
		return nil
	case len(body) == 0:
		return errors.New("the body is missing")
	}
	return d.content(wanted, d.place(o.Spec["requestBody"], at+"/requestBody"), "application/json", body)
}

// parameter judges one parameter where it is given.
func (d *Document) parameter(p any, at string, u *url.URL, vars map[string]string, header http.Header) error {
	m, _ := d.Dig(p).(map[string]any)
	name, _ := m["name"].(string)
	var text string
	given := false
	switch m["in"] {
	case "path":
		raw, ok := vars[name]
		plain, err := url.PathUnescape(raw)
		if err != nil {
			return fmt.Errorf("path parameter %s: %w", name, err)
		}
		text, given = plain, ok
	case "query":
		text, given = u.Query().Get(name), u.Query().Has(name)
	case "header":
		text, given = header.Get(name), header.Get(name) != ""
	}
	if !given {
		if m["required"] == true {
			return fmt.Errorf("%v parameter %s is missing", m["in"], name)
		}
		return nil
	}
	if err := d.judge(d.place(p, at), typed(d.Dig(m["schema"], "type"), text)); err != nil {
		return fmt.Errorf("%v parameter %s: %w", m["in"], name, err)
	}
	return nil
}

// typed reads a parameter's text as its schema's type.
func typed(kind any, text string) any {
	switch kind {
	case "integer", "number":
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return n
		}
	case "boolean":
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	}
	return text
}

// Response returns what is wrong with an answer to an operation: a status that is
// not described, a header that is missing, a body of another shape.
func (d *Document) Response(o *Operation, status int, header http.Header, body []byte) error {
	key := strconv.Itoa(status)
	responses, _ := o.Spec["responses"].(map[string]any)
	if responses[key] == nil {
		return fmt.Errorf("%s does not answer %s", o, key)
	}
	at := d.place(responses[key], pointer(o)+"/responses/"+key)
	response, _ := d.Dig(responses[key]).(map[string]any)
	headers, _ := response["headers"].(map[string]any)
	for name := range headers {
		if d.Dig(headers[name], "required") == true && header.Get(name) == "" {
			return fmt.Errorf("%s %s lacks the header %s", o, key, name)
		}
	}
	if response["content"] == nil {
		if len(body) > 0 {
			return fmt.Errorf("%s %s has a body", o, key)
		}
		return nil
	}
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	if err := d.content(response, at, kind, body); err != nil {
		return fmt.Errorf("%s %s: %w", o, key, err)
	}
	return nil
}

// content judges a body by the schema of its media type.
func (d *Document) content(in map[string]any, at, kind string, body []byte) error {
	if d.Dig(in, "content", kind) == nil {
		return fmt.Errorf("the content type %q is not described", kind)
	}
	at += "/content/" + escape(kind)
	if kind != "application/json" {
		return d.judge(at, string(body))
	}
	return d.verdict(at, body)
}

// place is the pointer of a part, or of what it refers to.
func (d *Document) place(part any, at string) string {
	m, _ := part.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		return strings.TrimPrefix(ref, "#")
	}
	return at
}

func pointer(o *Operation) string {
	return "/paths/" + escape(o.Path) + "/" + strings.ToLower(o.Method)
}
