package openapi_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"skep/spec"
	"skep/spec/openapi"
)

// referenceEnv names the directory with the published MAIL 1.3 files, which are not part
// of this repository; "make conform-reference REF=dir" sets it.
const referenceEnv = "SKEP_REFERENCE"

// TestPublishedDescription holds our description against the published one: they differ
// where the list of deviations says, and nowhere else.
func TestPublishedDescription(t *testing.T) {
	t.Parallel()
	dir := os.Getenv(referenceEnv)
	if dir == "" {
		t.Skip(referenceEnv + " is not set")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var published map[string]any
	if err := yaml.Unmarshal(raw, &published); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, d := range deviations(t) {
		want = append(want, d.Place+": "+d.Kind)
	}
	c := &comparison{ours: ours(t)}
	c.paths(published)
	slices.Sort(want)
	slices.Sort(c.found)
	if diff := cmp.Diff(want, c.found); diff != "" {
		t.Errorf("deviations.json (-) and what differs (+):\n%s", diff)
	}
}

// TestDeviations_R003: each deviation from the published description is one of ours as it
// stands, and has its reason.
func TestDeviations_R003(t *testing.T) {
	t.Parallel()
	doc := ours(t)
	for _, d := range deviations(t) {
		holds, ok := map[string]func(openapi.Place) bool{
			"missing":  func(p openapi.Place) bool { return !p.Found },
			"more":     func(p openapi.Place) bool { return p.Found },
			"optional": func(p openapi.Place) bool { return p.Found && !p.Required },
			"type":     func(p openapi.Place) bool { return p.Found && slices.Equal(p.Types, d.Types) },
		}[d.Kind]
		if !ok || d.Reason == "" {
			t.Errorf("%s: kind %q, reason %q", d.Place, d.Kind, d.Reason)
			continue
		}
		p, err := doc.At(d.Place)
		if err != nil || !holds(p) {
			t.Errorf("%s is not %s: %+v, %v", d.Place, d.Kind, p, err)
		}
	}
}

func deviations(t *testing.T) []openapi.Deviation {
	t.Helper()
	list, err := openapi.Deviations()
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	return list
}

func ours(t *testing.T) *openapi.Document {
	t.Helper()
	doc, err := openapi.Parse(spec.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// comparison finds where our description differs from the published one.
type comparison struct {
	ours  *openapi.Document
	found []string
}

func (c *comparison) differ(place, kind string) { c.found = append(c.found, place+": "+kind) }

func (c *comparison) at(place string) openapi.Place {
	p, _ := c.ours.At(place) // what is not there is not found
	return p
}

func (c *comparison) paths(published map[string]any) {
	paths, _ := published["paths"].(map[string]any)
	for path, v := range paths {
		methods, _ := v.(map[string]any)
		for method, v := range methods {
			place := strings.ToUpper(method) + " " + path
			if !c.at(place).Found {
				c.differ(place, "missing")
				continue
			}
			op, _ := v.(map[string]any)
			if body, ok := op["requestBody"].(map[string]any); ok {
				c.schema(place+" request", jsonSchema(body), true)
			}
			answers, _ := op["responses"].(map[string]any)
			for status, answer := range answers {
				if !c.at(fmt.Sprint(place, " ", status)).Found {
					c.differ(fmt.Sprint(place, " ", status), "missing")
				}
				answer, _ := answer.(map[string]any)
				c.schema(fmt.Sprint(place, " ", status), jsonSchema(answer), false)
			}
		}
	}
}

// jsonSchema is the schema of a body or an answer in JSON, nil for none.
func jsonSchema(of map[string]any) map[string]any {
	for _, key := range []string{"content", "application/json", "schema"} {
		of, _ = of[key].(map[string]any)
	}
	return of
}

// schema compares an object's members, and theirs. The schemas of messages are compared
// elsewhere.
func (c *comparison) schema(place string, s map[string]any, request bool) {
	if items, ok := s["items"].(map[string]any); ok {
		s = items
	}
	members, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for name, v := range members {
		member, _ := v.(map[string]any)
		at := place + " " + name
		here := c.at(at)
		switch {
		case !here.Found:
			c.differ(at, "missing")
			continue
		case slices.Contains(required, any(name)) && !here.Required:
			c.differ(at, "optional")
		}
		if there := typesOf(member); len(there) > 0 && !covers(there, here.Types, request) {
			c.differ(at, "type")
			continue
		}
		c.schema(at, member, request)
	}
	if closed, ok := s["additionalProperties"].(bool); !ok || closed {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.at(place).Members)) {
		if _, there := members[name]; !there {
			c.differ(place+" "+name, "more")
		}
	}
}

func typesOf(s map[string]any) (types []string) {
	if one, ok := s["type"].(string); ok {
		types = append(types, one)
	}
	if null, _ := s["nullable"].(bool); null {
		types = append(types, "null")
	}
	return types
}

// covers reports whether what may be sent is taken: the published types here, or ours by
// a client of the published description.
func covers(there, here []string, request bool) bool {
	sent, taken := here, there
	if request {
		sent, taken = there, here
	}
	return !slices.ContainsFunc(sent, func(kind string) bool {
		return !slices.Contains(taken, kind) && !(kind == "integer" && slices.Contains(taken, "number"))
	})
}
