package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// library plays turns of the agent on one world.
type library struct {
	t     *testing.T
	world *skeptest.World
	n     int
}

func newLibrary(t *testing.T) *library {
	return &library{t: t, world: &skeptest.World{KV: skep.ScopeAgent}}
}

// tell sends a message as an agent in a task of its own, and returns the answer.
func (l *library) tell(from, kind, payload string) string {
	l.t.Helper()
	l.n++
	out := skeptest.Run(Knowledge{}, skeptest.Input{
		Agent: "library", CommTargets: []string{from}, World: l.world,
		Message: skep.Message{
			ID: fmt.Sprint("m", l.n), Task: fmt.Sprint("t", l.n), Subject: "s", Sender: skep.Address{Type: skep.AddressAgent, Name: from},
			Body: `{"message_type":"` + kind + `","payload":` + payload + `}`,
		},
	})
	if out.Err != nil || len(out.Mail) != 1 {
		l.t.Fatalf("%s: %v, %+v", payload, out.Err, out.Mail)
	}
	return out.Mail[0].Body
}

// found are the statements of a query.
func (l *library) found(payload string) (list []found) {
	l.t.Helper()
	var a struct {
		Result struct{ Statements []found }
	}
	text := l.tell("asker", "knowledge_query", payload)
	if err := json.Unmarshal([]byte(text), &a); err != nil || !strings.Contains(text, `"status":"completed"`) {
		l.t.Fatalf("%s: %s, %v", payload, text, err)
	}
	return a.Result.Statements
}

func values(list []found) string {
	var texts []string
	for _, f := range list {
		texts = append(texts, fmt.Sprint(f.Value))
	}
	return strings.Join(texts, ", ")
}

// I-033: what is learned is found, a correction supersedes it, a deprecation hides it, and
// the history with who said what is kept.
func TestLearnCorrectDeprecate(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.tell("ann", "knowledge_update", `{"update_type":"learned","knowledge_domain":"tea","content":{"facts":["green tea: 80 degrees",{"id":"price","cents":250}],"rules":["ask first"],"patterns":[]},
		"confidence":0.9,"source":"user","scope":"global","tags":["hot","drink"]}`)
	if got := values(l.found(`{"knowledge_domain":"tea"}`)); strings.Count(got, ",") != 2 {
		t.Fatalf("found %s", got)
	}
	l.tell("bob", "knowledge_update", `{"update_type":"corrected","knowledge_domain":"tea","content":{"facts":[{"replaces":"green tea: 80 degrees","statement":"green tea: 70 degrees"},{"id":"price","cents":300}]},"source":"external"}`)
	list := l.found(`{"knowledge_domain":"tea","text":"GREEN","history":true}`)
	if values(list) != "green tea: 70 degrees" || list[0].By.Agent != "bob" || list[0].Scope != "global" || list[0].State != corrected ||
		len(list[0].History) != 1 || list[0].History[0].Value != "green tea: 80 degrees" || list[0].History[0].By.Agent != "ann" || list[0].History[0].By.Task != "t1" {
		t.Errorf("after a correction: %+v", list)
	}
	l.tell("eve", "knowledge_update", `{"update_type":"deprecated","knowledge_domain":"tea","content":{"rules":["ask first"]}}`)
	if list := l.found(`{"knowledge_domain":"tea","kind":"rule"}`); len(list) > 0 {
		t.Errorf("deprecated, and found: %+v", list)
	}
	if list := l.found(`{"knowledge_domain":"tea","kind":"rule","include_deprecated":true}`); len(list) != 1 || list[0].State != deprecated || list[0].By.Agent != "eve" || list[0].Value != "ask first" {
		t.Errorf("with what is deprecated: %+v", list)
	}
	if got := l.tell("ann", "knowledge_update", `{"update_type":"learned","knowledge_domain":"tea","content":{"rules":["ask first"]}}`); !strings.Contains(got, `"version":3`) {
		t.Errorf("learned again: %s", got)
	}
	if got := l.tell("ann", "knowledge_update", `{"update_type":"learned","knowledge_domain":"tea","content":{"rules":[{"statement":"ask first"}]}}`); !strings.Contains(got, `"version":3`) {
		t.Errorf("a statement in an object is another than the statement: %s", got)
	}
}

// I-032: shared contexts are found by type, scope and tags.
func TestContexts(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.tell("ann", "context_share", `{"context_type":"user_preferences","scope":"user-specific","data":{"theme":"dark"},"relevance_score":0.85,"tags":["ui","ann"]}`)
	l.tell("ann", "context_share", `{"context_type":"insights","scope":"global","data":"bees are busy","relevance_score":0.2,"tags":["bees"]}`)
	for payload, want := range map[string]string{
		`{}`: "bees are busy, map[theme:dark]", `{"scope":"global"}`: "bees are busy", `{"tags":["ui","ann"]}`: "map[theme:dark]",
		`{"tags":["ui","bees"]}`: "", `{"knowledge_domain":"user_preferences"}`: "map[theme:dark]", `{"min_confidence":0.5}`: "map[theme:dark]",
		`{"kind":"context","text":"dark"}`: "map[theme:dark]", `{"knowledge_domain":"none"}`: "",
	} {
		if got := values(l.found(payload)); got != want {
			t.Errorf("%s: %s, want %s", payload, got, want)
		}
	}
}

// A query that would select more than it means is refused, with the word that is wrong.
func TestQueryRefusals(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for payload, want := range map[string]string{
		`{"domain":"tea"}`: `unknown field \"domain\"; a query has knowledge_domain`, `{"knowledge_domain":"tea","tag":["x"]}`: `unknown field \"tag\"`,
		`{"kind":"facts"}`: `kind is \"facts\"; it is fact, rule, pattern or context`, `{"limit":"5"}`: `payload.limit must not be a JSON string`,
	} {
		if got := l.tell("asker", "knowledge_query", payload); !strings.Contains(got, `"status":"rejected"`) || !strings.Contains(got, want) {
			t.Errorf("%s is answered with %s, want %s", payload, got, want)
		}
	}
}

// What is malformed or contradicts what is known is answered, and changes nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.tell("ann", "knowledge_update", `{"update_type":"learned","knowledge_domain":"d","content":{"facts":[{"id":"x","v":1}]}}`)
	for payload, want := range map[string]string{
		`{"update_type":"learned","knowledge_domain":"d","content":{"facts":[{"id":"y","v":1},{"id":"y","v":2}]}}`:     "INVALID_FORMAT",
		`{"update_type":"deprecated","knowledge_domain":"d","content":{"rules":[{"id":"x"}]}}`:                         "CONFLICT",
		`{"update_type":"learned","knowledge_domain":"d","content":{"facts":["z"]},"source":"the host itself"}`:        "INVALID_FORMAT",
		`{"update_type":"learned","knowledge_domain":"d","content":{"facts":[{"id":"x","v":2}]}}`:                      "CONFLICT",
		`{"update_type":"learned","knowledge_domain":"d","content":{"facts":["new",{"id":"x","v":2}]}}`:                "CONFLICT",
		`{"update_type":"corrected","knowledge_domain":"d","content":{"facts":["what?"]}}`:                             "INVALID_FORMAT",
		`{"update_type":"corrected","knowledge_domain":"d","content":{"facts":[{"id":"x","v":3},{"id":"none"}]}}`:      "NOT_FOUND",
		`{"update_type":"deprecated","knowledge_domain":"other","content":{"facts":[{"id":"x"}]}}`:                     "NOT_FOUND",
		`{"update_type":"forgot","knowledge_domain":"d","content":{"facts":["x"]}}`:                                    "INVALID_FORMAT",
		`{"update_type":"learned","content":{"facts":["x"]}}`:                                                          "INVALID_FORMAT",
		`{"update_type":"learned","knowledge_domain":"a\nb","content":{"facts":["x"]}}`:                                "INVALID_FORMAT",
		`{"update_type":"learned","knowledge_domain":"d","content":{}}`:                                                "INVALID_FORMAT",
		`{"update_type":"learned","knowledge_domain":"d","content":{"facts":["x"]},"confidence":2}`:                    "INVALID_FORMAT",
		`{"update_type":"learned","knowledge_domain":"d","content":{"facts":["` + strings.Repeat("x", 61<<10) + `"]}}`: "LIMIT",
		`{"update_type":"learned","knowledge_domain":"d","content":{"facts":"x"}}`:                                     "INVALID_FORMAT",
		`7`: "INVALID_FORMAT",
	} {
		if got := l.tell("bob", "knowledge_update", payload); !strings.Contains(got, `"rejected"`) || !strings.Contains(got, `"`+want+`"`) {
			t.Errorf("%.100s: %.300s, want %s", payload, got, want)
		}
	}
	if got := l.tell("bob", "context_share", `{"context_type":"d","id":"x","data":1}`); !strings.Contains(got, "CONFLICT") {
		t.Errorf("a context under the id of a fact: %s", got)
	}
	for _, kind := range []string{"", "task_request"} {
		if got := l.tell("bob", kind, `{}`); !strings.Contains(got, "INVALID_FORMAT") {
			t.Errorf("message_type %q: %s", kind, got)
		}
	}
	if list := l.found(`{"history":true,"include_deprecated":true}`); len(list) != 1 || len(list[0].History) != 0 {
		t.Errorf("kept %+v", list)
	}
}

// A value that nests too deep is not kept, neither new nor as a correction; the deepest one is found.
func TestDepth(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	nested := func(open string, levels int) string {
		return strings.Repeat(open, levels) + "1" + strings.Repeat(map[string]string{"[": "]", `{"a":`: "}"}[open], levels)
	}
	update := func(kind, value string) string {
		return l.tell("ann", "knowledge_update", `{"update_type":"`+kind+`","knowledge_domain":"d","content":{"facts":[{"id":"x","statement":`+value+`}]}}`)
	}
	share := func(value string) string {
		return l.tell("ann", "context_share", `{"context_type":"c","id":"y","data":`+value+`}`)
	}
	for _, open := range []string{"[", `{"a":`} {
		for _, levels := range []int{maxDepth + 1, 5000} {
			deep := nested(open, levels)
			for _, got := range []string{update("learned", deep), share(deep)} {
				if !strings.Contains(got, `"rejected"`) || !strings.Contains(got, "nests more than 32 levels") {
					t.Errorf("%d levels of %s: %.300s", levels, open, got)
				}
			}
		}
	}
	if list := l.found(`{}`); len(list) != 0 {
		t.Errorf("kept %+v", list)
	}
	deepest := nested("[", maxDepth-1) // in the object of its statement
	for _, got := range []string{update("learned", deepest), share(nested("[", maxDepth))} {
		if !strings.Contains(got, `"completed"`) {
			t.Errorf("the deepest value: %.300s", got)
		}
	}
	if got := update("corrected", nested("[", maxDepth)); !strings.Contains(got, "INVALID_FORMAT") {
		t.Errorf("a correction that is too deep: %.300s", got)
	}
	if list := l.found(`{"history":true}`); len(list) != 2 || len(list[0].History)+len(list[1].History) != 0 {
		t.Errorf("kept %+v", list)
	}
}

// What is deprecated stays so until it is learned again, and what is sent again changes nothing.
func TestSentAgain(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	const deprecate = `{"update_type":"deprecated","knowledge_domain":"d","content":{"facts":[{"id":"x"}]}}`
	const learn = `{"update_type":"learned","knowledge_domain":"d","content":{"facts":[{"id":"x","v":1}]}}`
	const correct = `{"update_type":"corrected","knowledge_domain":"d","content":{"facts":[{"id":"x","v":2}]}}`
	const share = `{"context_type":"c","id":"y","data":"bees"}`
	for i, c := range []struct{ kind, payload, want string }{
		{"knowledge_update", learn, `"version":1`}, {"knowledge_update", learn, `"version":1`},
		{"knowledge_update", deprecate, `"version":2`}, {"knowledge_update", deprecate, `"version":2`},
		{"knowledge_update", correct, "CONFLICT"},
		{"knowledge_update", learn, `"version":3`}, {"knowledge_update", correct, `"version":4`},
		{"context_share", share, `"version":1`}, {"context_share", share, `"version":1`},
		{"context_share", `{"context_type":"c","id":"y","data":"wasps"}`, `"version":2`},
	} {
		if got := l.tell("ann", c.kind, c.payload); !strings.Contains(got, c.want) {
			t.Errorf("%d: %s: %s, want %s", i, c.payload, got, c.want)
		}
	}
}

// A statement that is told again with another confidence, source, scope or other tags has a
// version with these, by who told it; what the repeat leaves out stays.
func TestToldAgain(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for i, c := range []struct{ from, kind, payload, want string }{
		{"ann", "knowledge_update", `"update_type":"learned","knowledge_domain":"d","content":{"facts":["x"]},"confidence":0.4,"source":"inference","tags":["a"]`, `"version":1`},
		{"bob", "knowledge_update", `"update_type":"learned","knowledge_domain":"d","content":{"facts":["x"]}`, `"version":1`},
		{"bob", "knowledge_update", `"update_type":"learned","knowledge_domain":"d","content":{"facts":["x"]},"confidence":0.9`, `"version":2`},
		{"bob", "knowledge_update", `"update_type":"learned","knowledge_domain":"d","content":{"facts":["x"]},"confidence":0.9,"source":"inference"`, `"version":2`},
		{"eve", "knowledge_update", `"update_type":"learned","knowledge_domain":"d","content":{"facts":["x"]},"source":"user","scope":"global"`, `"version":3`},
		{"ann", "context_share", `"context_type":"c","id":"y","data":"bees","relevance_score":0.2`, `"version":1`},
		{"ann", "context_share", `"context_type":"c","id":"y","data":"bees"`, `"version":1`},
		{"bob", "context_share", `"context_type":"c","id":"y","data":"bees","relevance_score":0.7`, `"version":2`},
	} {
		if got := l.tell(c.from, c.kind, "{"+c.payload+"}"); !strings.Contains(got, c.want) || !strings.Contains(got, `"state":"learned"`) {
			t.Errorf("%d: %s, want %s", i, got, c.want)
		}
	}
	list := l.found(`{"history":true,"min_confidence":0.5}`)
	if len(list) != 2 || *list[0].Confidence != 0.7 || list[0].By.Agent != "bob" {
		t.Fatalf("found %+v", list)
	}
	x := list[1]
	if *x.Confidence != 0.9 || x.Source != "user" || x.Scope != "global" || len(x.Tags) != 1 || x.By.Agent != "eve" || len(x.History) != 2 || x.History[1].By.Agent != "bob" {
		t.Errorf("x is %+v", x)
	}
}

// What the store has no place for is refused, and the answer has what was kept before.
func TestStoreIsFull(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	in := skeptest.Input{Agent: "library", World: l.world, CommTargets: []string{"bob"}}
	in.Message = skep.Message{Sender: skep.Address{Type: skep.AddressAgent, Name: "bob"}, Body: `{"message_type":"knowledge_update","payload":{"update_type":"learned","knowledge_domain":"d","content":{"facts":[{"id":"a"},{"id":"b"},{"id":"c"}]}}}`}
	calls := 0
	in.Answer = func(op skep.Op, _ json.RawMessage) (any, error) {
		if op == skep.OpKVCas {
			if calls++; calls == 3 {
				return nil, skep.Errorf(skep.Limit, "quota")
			}
		}
		return nil, nil
	}
	out := skeptest.Run(Knowledge{}, in)
	if out.Err != nil || len(out.Mail) != 1 {
		t.Fatalf("%v, %+v", out.Err, out.Mail)
	}
	got := out.Mail[0].Body
	if !strings.Contains(got, `"rejected"`) || !strings.Contains(got, `"LIMIT"`) || !strings.Contains(got, `"id":"b"`) || strings.Contains(got, `"id":"c"`) || len(l.found(`{}`)) != 2 {
		t.Errorf("answered %s", got)
	}
}

// Long lists come page by page, and the collection has an end.
func TestPages(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for i := range 5 {
		var facts []string
		for j := range 180 {
			facts = append(facts, fmt.Sprintf(`"fact %d"`, i*180+j))
		}
		l.tell("ann", "knowledge_update", `{"update_type":"learned","knowledge_domain":"d","content":{"facts":[`+strings.Join(facts, ",")+`]}}`)
	}
	if got := l.tell("ann", "knowledge_update", `{"update_type":"learned","knowledge_domain":"e","content":{"facts":["one more"]}}`); !strings.Contains(got, `"LIMIT"`) {
		t.Errorf("statement 901: %s", got)
	}
	seen, after := map[string]bool{}, ""
	for {
		var a struct {
			Result struct {
				Statements []found
				Next       string
			}
		}
		payload, _ := json.Marshal(map[string]any{"limit": 400, "after": after}) // texts and a number
		if err := json.Unmarshal([]byte(l.tell("bob", "knowledge_query", string(payload))), &a); err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Result.Statements {
			seen[f.ID] = true
		}
		if after = a.Result.Next; after == "" {
			break
		}
	}
	if len(seen) != maxStatements {
		t.Errorf("found %d statements", len(seen))
	}
}

// Two that add statements at once have place for one: the second takes its own back, and keeps what
// it has changed besides.
func TestAddedAtOnce(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	learn := func(from string, first, n int, more string) string {
		var facts []string
		for i := range n {
			facts = append(facts, fmt.Sprintf(`"fact %d"`, first+i))
		}
		return l.tell(from, "knowledge_update", `{"update_type":"learned","knowledge_domain":"d","content":{"facts":[`+strings.Join(facts, ",")+more+`]}}`)
	}
	for i := range 5 {
		learn("ann", i*179, 179, "")
	}
	in := skeptest.Input{Agent: "library", World: l.world, CommTargets: []string{"bob"}}
	in.Message = skep.Message{Sender: skep.Address{Type: skep.AddressAgent, Name: "bob"}, Body: `{"message_type":"knowledge_update","payload":{"update_type":"learned","knowledge_domain":"d","confidence":0.5,"content":{"facts":[{"id":"a"},"fact 7",{"id":"b"}]}}}`}
	others := 0
	in.Answer = func(op skep.Op, _ json.RawMessage) (any, error) {
		if op == skep.OpKVCas && others == 0 {
			others++
			if got := learn("eve", 1000, 5, ""); !strings.Contains(got, `"completed"`) {
				t.Errorf("eve is answered with %s", got)
			}
		}
		return nil, nil
	}
	out := skeptest.Run(Knowledge{}, in)
	if out.Err != nil || len(out.Mail) != 1 {
		t.Fatalf("%v, %+v", out.Err, out.Mail)
	}
	got := out.Mail[0].Body
	if !strings.Contains(got, `"LIMIT"`) || strings.Contains(got, `"id":"a"`) || strings.Count(got, `"kind":"fact","state":"learned","version":2`) != 1 {
		t.Errorf("bob is answered with %s", got)
	}
	if n := len(l.world.Values(skep.ScopeAgent, in)); n != maxStatements {
		t.Errorf("%d statements are kept", n)
	}
}

// Two that change a statement at once: the second reads what the first has written.
func TestChangedAtOnce(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.tell("ann", "knowledge_update", `{"update_type":"learned","knowledge_domain":"d","content":{"facts":[{"id":"x","v":0}]}}`)
	in := skeptest.Input{Agent: "library", World: l.world}
	lost := 0
	in.Message = skep.Message{Sender: skep.Address{Type: skep.AddressAgent, Name: "bob"}, Body: `{"message_type":"knowledge_update","payload":{"update_type":"corrected","knowledge_domain":"d","content":{"facts":[{"id":"x","v":2}]}}}`}
	in.Answer = func(op skep.Op, _ json.RawMessage) (any, error) {
		if op == skep.OpKVCas && lost == 0 {
			lost++
			l.tell("eve", "knowledge_update", `{"update_type":"corrected","knowledge_domain":"d","content":{"facts":[{"id":"x","v":1}]}}`)
			return json.RawMessage(`{"ok":false}`), nil
		}
		return nil, nil
	}
	if out := skeptest.Run(Knowledge{}, in); out.Err != nil || lost != 1 {
		t.Fatalf("%v, %d", out.Err, lost)
	}
	list := l.found(`{"history":true}`)
	if len(list) != 1 || len(list[0].History) != 2 || list[0].History[1].By.Agent != "eve" || list[0].By.Agent != "bob" {
		t.Errorf("kept %+v", list)
	}
}
