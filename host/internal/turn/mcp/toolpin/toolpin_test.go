package toolpin_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"skep/host/internal/turn/mcp/toolpin"
)

func tool(t testing.TB, name, description, schema, annotations string) toolpin.Tool {
	t.Helper()
	made, err := toolpin.New(name, description, json.RawMessage(schema), json.RawMessage(annotations))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// The digest depends on the meaning of a definition, not on its spelling.
func TestDigest(t *testing.T) {
	t.Parallel()
	base := tool(t, "read", "Reads.", `{"type":"object","properties":{"a":{"type":"number","minimum":1.0}}}`, `{"readOnlyHint":true}`)
	same := tool(t, "read", "Reads.", " {\n\"properties\": {\"a\":{\"minimum\":1,\"type\":\"\\u006eumber\"}}, \"type\":\"object\"}", ` { "readOnlyHint" : true}`)
	if base.SHA256 != same.SHA256 {
		t.Error("another spelling has another digest")
	}
	for what, other := range map[string]toolpin.Tool{
		"name":        tool(t, "reads", "Reads.", `{"type":"object","properties":{"a":{"type":"number","minimum":1}}}`, `{"readOnlyHint":true}`),
		"description": tool(t, "read", "Reads.\u200b", `{"type":"object","properties":{"a":{"type":"number","minimum":1}}}`, `{"readOnlyHint":true}`),
		"schema":      tool(t, "read", "Reads.", `{"type":"object","properties":{"a":{"type":"number","minimum":2}}}`, `{"readOnlyHint":true}`),
		"annotations": tool(t, "read", "Reads.", `{"type":"object","properties":{"a":{"type":"number","minimum":1}}}`, `{"readOnlyHint":false}`),
		"none":        tool(t, "read", "Reads.", `{"type":"object","properties":{"a":{"type":"number","minimum":1}}}`, `null`),
		"hidden twin": tool(t, "read", "Reads.", `{"type":"object","type":"array","properties":{"a":{"type":"number","minimum":1}}}`, `{"readOnlyHint":true}`),
	} {
		if other.SHA256 == base.SHA256 {
			t.Errorf("%s: the same digest", what)
		}
	}
}

func TestRepeatable(t *testing.T) {
	t.Parallel()
	for annotations, want := range map[string]bool{
		``: false, `null`: false, `{}`: false, `{"readOnlyHint":true}`: true, `{"idempotentHint":true}`: true,
		`{"readOnlyHint":false,"destructiveHint":false}`: false, `{"readOnlyHint":"yes"}`: false,
	} {
		if got := tool(t, "a", "", `{}`, annotations).Repeatable(); got != want {
			t.Errorf("%s: %v", annotations, got)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, 80) + `1` + strings.Repeat(`}`, 80)
	for want, c := range map[string]struct{ name, description, schema, annotations string }{
		"the name":                  {"a b", "", `{}`, ``},
		"is not 1 to 128":           {"", "", `{}`, ``},
		"the description has":       {"a", strings.Repeat("x", toolpin.MaxDescription+1), `{}`, ``},
		"inputSchema is not a JSON": {"a", "", `[]`, ``},
		"inputSchema has":           {"a", "", `{"a":"` + strings.Repeat("x", toolpin.MaxSchema) + `"}`, ``},
		"nested deeper":             {"a", "", deep, ``},
		"annotations is not a JSON": {"a", "", `{}`, `"x"`},
	} {
		if _, err := toolpin.New(c.name, c.description, json.RawMessage(c.schema), json.RawMessage(c.annotations)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	a := tool(t, "a", "Hidden: \u202e\U000E0041<b>.", `{"type":"object"}`, ``)
	b := tool(t, "b", "B", `{}`, `{"title":"x"}`)
	text, err := toolpin.Encode("notes", []toolpin.Tool{b, a})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(`Hidden: \u202e\udb40\udc41<b>.`)) {
		t.Errorf("what is hidden does not show:\n%s", text)
	}
	got, err := toolpin.Decode("notes", text)
	if err != nil || len(got) != 2 || got[0].SHA256 != a.SHA256 || got[0].Description != a.Description || got[1].SHA256 != b.SHA256 {
		t.Fatalf("%v %v", got, err)
	}
	if again, _ := toolpin.Encode("notes", got); !bytes.Equal(again, text) {
		t.Errorf("written in another way:\n%s\n%s", text, again)
	}
	if merged := toolpin.Merge(got, []toolpin.Tool{tool(t, "b", "new", `{}`, ``), tool(t, "c", "", `{}`, ``)}); len(merged) != 3 || merged[1].Description != "new" {
		t.Errorf("%v", merged)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	good, _ := toolpin.Encode("notes", []toolpin.Tool{tool(t, "a", "A", `{}`, ``)})
	text := string(good)
	for want, broken := range map[string]string{
		"is not a file of pins": `{"schema":1,"server":"notes","tools":[{"x":1}]}`,
		"unexpected EOF":        text[:len(text)-4],
		"has more after":        text + "{}",
		"schema 2":              strings.Replace(text, `"schema": 1`, `"schema": 2`, 1),
		"of server \"other\"":   strings.Replace(text, `"notes"`, `"other"`, 1),
		"another definition":    strings.Replace(text, `"A"`, `"B"`, 1),
		"not UTF-8":             text + "\xff",
		"bytes, at most":        text + strings.Repeat(" ", toolpin.MaxFile),
		"tools, at most":        `{"schema":1,"server":"notes","tools":[{}` + strings.Repeat(",{}", toolpin.MaxTools) + `]}`,
	} {
		if _, err := toolpin.Decode("notes", []byte(broken)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	a := tool(t, "a", "A", `{}`, ``)
	twice, _ := toolpin.Encode("notes", []toolpin.Tool{a, a})
	if _, err := toolpin.Decode("notes", twice); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Error(err)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	before := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n"
	after := strings.Replace(strings.Replace(before, "1\n", "one\n", 1), "12\n", "12\n13\n", 1)
	after = strings.Replace(after, "1one", "11", 1)
	want := "-1\n+one\n 2\n 3\n 4\n…\n 10\n 11\n 12\n+13\n"
	if got := toolpin.Diff([]byte(before), []byte(after)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if toolpin.Diff([]byte(before), []byte(before)) != "" || toolpin.Diff(nil, []byte("a\n")) != "+a\n" || toolpin.Diff([]byte("a\n"), nil) != "-a\n" {
		t.Error("nothing, all or none")
	}
	long := strings.Repeat("x\n", 5000)
	if got := toolpin.Diff([]byte(long), []byte(long+"y\n")); !strings.HasSuffix(got, "+y\n") || !strings.HasPrefix(got, "-x\n") {
		t.Errorf("%.40s", got)
	}
}

// FuzzDecode checks that each file is decoded or refused, and that a decoded file survives
// another round trip.
func FuzzDecode(f *testing.F) {
	good, _ := toolpin.Encode("notes", []toolpin.Tool{tool(f, "a", "A\u200b", `{"type":"object","properties":{"n":{"maximum":1e30}}}`, `{"readOnlyHint":true}`)})
	f.Add(good)
	f.Add([]byte(`{"schema":1,"server":"notes","tools":[]}`))
	f.Add([]byte(`{"schema":1,"server":"notes","tools":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		tools, err := toolpin.Decode("notes", raw)
		if err != nil {
			return
		}
		text, err := toolpin.Encode("notes", tools)
		if err != nil {
			t.Fatal(err)
		}
		again, err := toolpin.Decode("notes", text)
		if err != nil || len(again) != len(tools) {
			t.Fatalf("%v\n%s", err, text)
		}
	})
}

// FuzzNew checks that an accepted definition can be pinned.
func FuzzNew(f *testing.F) {
	f.Add("a", "d", []byte(`{"type":"object"}`), []byte(`{}`))
	f.Add("a", "\xff", []byte(`{"a":1e999}`), []byte(`null`))
	f.Fuzz(func(t *testing.T, name, description string, schema, annotations []byte) {
		made, err := toolpin.New(name, description, schema, annotations)
		if err != nil {
			return
		}
		text, err := toolpin.Encode("s", []toolpin.Tool{made})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := toolpin.Decode("s", text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	})
}
