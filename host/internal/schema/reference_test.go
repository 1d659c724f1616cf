package schema_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/xeipuuv/gojsonschema"

	"skep/host/internal/schema"
	"skep/spec/conformance"
	"skep/spec/mail"
)

// referenceEnv names the directory with the published MAIL 1.3 schemas, which are
// not part of this repository; "make conform-reference REF=dir" sets it.
const referenceEnv = "SKEP_REFERENCE"

// TestReference holds our schemas and our model against the published schemas. One
// difference is known and wanted: there a task_id is a UUID, here it is any 1 to
// 256 printable characters. Every other one is a failure.
func TestReference(t *testing.T) {
	dir := os.Getenv(referenceEnv)
	if dir == "" {
		t.Skip(referenceEnv + " is not set")
	}
	s := load(t)
	core := published(t, dir, "MAIL-core.schema.json")
	inter := published(t, dir, "MAIL-interswarm.schema.json")
	runReference(t, "message", reference{
		asIs: mustCompile(t, core), freeTask: mustCompile(t, freeTaskID(core)),
		ours:   s.Message,
		model:  func(raw []byte) error { _, err := mail.ParseMessage(raw); return err },
		task:   func(raw []byte) string { m, _ := mail.ParseMessage(raw); return m.Payload.TaskID },
		sample: func(seed uint64) []byte { m, _ := sparse(seed); return m },
		extra:  conformance.Messages,
	})
	runReference(t, "interswarm", reference{
		asIs: mustCompile(t, inter, core), freeTask: mustCompile(t, freeTaskID(inter), freeTaskID(core)),
		ours:   s.Interswarm,
		model:  func(raw []byte) error { _, err := mail.ParseInterswarm(raw); return err },
		task:   func(raw []byte) string { w, _ := mail.ParseInterswarm(raw); return w.Payload.TaskID },
		sample: func(seed uint64) []byte { _, w := sparse(seed); return w },
		extra:  conformance.Interswarm,
	})
}

// reference is one kind of document and those who judge it.
type reference struct {
	asIs     *gojsonschema.Schema // as published, formats asserted
	freeTask *gojsonschema.Schema // the same but for the known difference
	ours     func([]byte) error
	model    func([]byte) error
	task     func([]byte) string
	sample   func(seed uint64) []byte
	extra    func() ([]conformance.Vector, error)
}

func runReference(t *testing.T, name string, r reference) {
	t.Helper()
	samples := corpus(t, r)
	counts := map[string]int{}
	for _, raw := range samples {
		doc, err := schema.Decode(raw)
		if err != nil {
			// Duplicate keys, trailing bytes and the like are beneath any schema.
			counts["not JSON with one reading"]++
			if r.ours(raw) == nil || r.model(raw) == nil {
				t.Errorf("%s: taken, though %v\n%s", name, err, raw)
			}
			continue
		}
		asIs, freeTask := verdict(t, r.asIs, doc), verdict(t, r.freeTask, doc)
		ours, model := r.ours(raw) == nil, r.model(raw) == nil
		if ours != freeTask || model != freeTask {
			t.Errorf("%s: published %v, our schema %v, our model %v\n%s", name, freeTask, ours, model, raw)
		}
		switch {
		case asIs && freeTask:
			counts["valid for all"]++
		case !asIs && !freeTask:
			counts["invalid for all"]++
		case !asIs && !mail.ValidUUID(r.task(raw)):
			counts["known difference: task_id is no UUID"]++
		default:
			t.Errorf("%s: a difference that task_id does not explain\n%s", name, raw)
		}
	}
	t.Logf("%s: %d samples: %v", name, len(samples), counts)
	for _, k := range []string{"valid for all", "invalid for all", "known difference: task_id is no UUID"} {
		if counts[k] < 50 {
			t.Errorf("%s: only %d samples are %q", name, counts[k], k)
		}
	}
}

// corpus returns the vectors and some thousand generated documents.
func corpus(t *testing.T, r reference) [][]byte {
	t.Helper()
	vectors, err := r.extra()
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for _, v := range vectors {
		all = append(all, v.Raw)
	}
	for seed := range uint64(6000) {
		all = append(all, r.sample(seed))
	}
	return all
}

func verdict(t *testing.T, s *gojsonschema.Schema, doc any) bool {
	t.Helper()
	res, err := s.Validate(gojsonschema.NewRawLoader(doc))
	if err != nil {
		t.Fatal(err)
	}
	return res.Valid()
}

func published(t *testing.T, dir, name string) map[string]any {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// mustCompile compiles without the lint: the published schemas are written for a
// newer draft, but in words that draft 7 has too.
func mustCompile(t *testing.T, root map[string]any, others ...map[string]any) *gojsonschema.Schema {
	t.Helper()
	s, err := schema.Compile(root, others...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// freeTaskID returns a copy of a published schema with our rule for task_id.
func freeTaskID(doc map[string]any) map[string]any {
	out := make(map[string]any, len(doc))
	for k, v := range doc {
		if sub, ok := v.(map[string]any); ok {
			v = freeTaskID(sub)
		}
		if k == "task_id" {
			v = map[string]any{"type": "string", "minLength": 1, "maxLength": mail.MaxTaskID, "format": "printable"}
		}
		out[k] = v
	}
	return out
}
