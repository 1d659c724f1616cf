package openapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"slices"
	"strings"
)

//go:embed page.html.tmpl
var pageText string

// page is what the template shows.
type page struct {
	Title, Version, Summary string
	About                   []string
	Chapters                []chapter
	Schemas                 []shown
}

type chapter struct {
	Name, About string
	Operations  []operation
}

type operation struct {
	ID, Method, Path, Summary string
	About                     []string
	Who                       string
	Parameters                []parameter
	Request                   string
	Responses                 []response
}

type parameter struct{ Name, In, About string }

type response struct{ Status, About, Example string }

// shown is a schema by its name.
type shown struct{ Name, Text string }

// JSON returns the document as JSON, with the keys of every object in order.
func (d *Document) JSON() ([]byte, error) { return json.Marshal(d.root) }

// Page returns the document for people: one HTML page without scripts, which
// loads nothing.
func (d *Document) Page() ([]byte, error) {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return nil, err
	}
	info := d.Dig(d.root, "info")
	p := page{
		Title: d.text(info, "title"), Version: d.text(info, "version"),
		Summary: d.text(info, "summary"), About: paragraphs(d.text(info, "description")),
	}
	tags, _ := d.root["tags"].([]any)
	for _, tag := range tags {
		p.Chapters = append(p.Chapters, d.chapter(d.text(tag, "name"), d.text(tag, "description")))
	}
	schemas, _ := d.Dig(d.root, "components", "schemas").(map[string]any)
	for name, s := range schemas {
		p.Schemas = append(p.Schemas, shown{name, indented(s)})
	}
	slices.SortFunc(p.Schemas, func(a, b shown) int { return strings.Compare(a.Name, b.Name) })
	var b bytes.Buffer
	err = t.Execute(&b, p)
	return b.Bytes(), err
}

func (d *Document) chapter(tag, about string) chapter {
	c := chapter{Name: tag, About: about}
	for _, o := range d.operations {
		if tags, _ := o.Spec["tags"].([]any); slices.Contains(tags, any(tag)) {
			c.Operations = append(c.Operations, d.operation(o))
		}
	}
	return c
}

func (d *Document) operation(o *Operation) operation {
	out := operation{
		ID: d.text(o.Spec, "operationId"), Method: o.Method, Path: o.Path,
		Summary: d.text(o.Spec, "summary"), About: paragraphs(d.text(o.Spec, "description")),
		Who: strings.Join(o.Roles(), ", "),
	}
	if o.Open() {
		out.Who = "anybody, without a key"
	}
	parameters, _ := o.Spec["parameters"].([]any)
	for _, p := range parameters {
		out.Parameters = append(out.Parameters, parameter{d.text(p, "name"), d.text(p, "in"), d.text(p, "description")})
	}
	out.Request = example(d.Dig(o.Spec, "requestBody", "content", "application/json", "example"))
	responses, _ := o.Spec["responses"].(map[string]any)
	for _, status := range append(o.Statuses(), "default") {
		r := d.Dig(responses[status])
		shape := response{Status: status, About: d.text(r, "description")}
		if strings.HasPrefix(status, "2") {
			shape.Example = example(d.Dig(r, "content", "application/json", "example"))
		}
		out.Responses = append(out.Responses, shape)
	}
	return out
}

func (d *Document) text(from any, key string) string {
	s, _ := d.Dig(from, key).(string)
	return strings.TrimSpace(s)
}

func paragraphs(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n\n")
}

// example renders an example, if there is one.
func example(v any) string {
	if v == nil {
		return ""
	}
	return indented(v)
}

// indented renders a value that came out of the document, and so encodes.
func indented(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v)
	return strings.TrimSpace(b.String())
}
