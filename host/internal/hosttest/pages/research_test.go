package pages_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/hosttest"
	"skep/host/internal/turn/model/modeltest"
)

var update = flag.Bool("update", false, "write examples/research/cassette.jsonl anew")

const researchDir = "../../../../examples/research"

// call is one call of a model's answer, its arguments in two pieces.
func call(t *testing.T, name string, args any) modeltest.Call {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	half := len(raw) / 2
	return modeltest.Call{Name: name, Arguments: []string{string(raw[:half]), string(raw[half:])}}
}

type fields = map[string]string

// asks is an answer that writes to an agent and waits.
func asks(t *testing.T, say, target, subject, body string) modeltest.Reply {
	return modeltest.Reply{Text: strings.SplitAfter(say, " "), Calls: []modeltest.Call{
		call(t, "send_request", fields{"target": target, "subject": subject, "body": body}), call(t, "await_message", fields{}),
	}}
}

// tells is an answer to the lead.
func tells(t *testing.T, subject, body string) modeltest.Reply {
	return modeltest.Reply{Calls: []modeltest.Call{call(t, "send_response", fields{"target": "lead", "subject": subject, "body": body})}}
}

const notes = `Combs hang from the dome, are fastened to the walls, and come out only by being cut. [skep.md]
Straw keeps the wet out only for a while. [skep.md]
Harvest: the heaviest and the lightest skeps were set over burning sulphur, often the best colonies among them. [harvest.md]
Driving spares the colony; it loses its stores and its brood. [harvest.md]
Langstroth, 1851: frames with the bee space around them are not fastened to anything; patent in 1852. [frames.md]
A frame can be lifted out, looked at and put back; the extractor of 1865 saves the wax. [frames.md]
Foulbrood lives on in old combs for decades; most states of the United States require frames that can be inspected. [inspection.md]
Left open: how quickly skeps were given up.`

// researchReplies answers as a model would that plays the four agents, asked what stands
// in the file ask.
func researchReplies(t *testing.T, answer string) []modeltest.Reply {
	return []modeltest.Reply{
		asks(t, "I ask the reader first.", "reader", "Why skeps were given up", "The question is why beekeepers gave up the skep. What do our pages say about the faults of the skep, and about what took its place?"),
		{Calls: []modeltest.Call{call(t, "read_directory", fields{"path": "."})}},
		{Text: []string{"All four ", "may help."}, Calls: []modeltest.Call{
			call(t, "read_file", fields{"path": "skep.md"}), call(t, "read_file", fields{"path": "harvest.md"}),
			call(t, "read_file", fields{"path": "frames.md"}), call(t, "read_file", fields{"path": "inspection.md"}),
		}},
		tells(t, "Re: Why skeps were given up", notes),
		asks(t, "The notes answer the question; the scout is not needed.", "editor", "Report", "Question: Why did beekeepers give up the skep?\n\nNotes:\n"+notes),
		tells(t, "Re: Report", answer),
		{Calls: []modeltest.Call{call(t, "task_complete", fields{"finish_message": answer})}},
	}
}

// metered numbers the calls of the answers and counts what these would cost.
func metered(all []modeltest.Reply) []modeltest.Reply {
	for i := range all {
		for j := range all[i].Calls {
			all[i].Calls[j].ID = fmt.Sprintf("call_%d_%d", i+1, j+1)
		}
		all[i].Usage = &abi.ChatUsage{InputTokens: int64(900 + 400*i), OutputTokens: 120}
	}
	return all
}

// provider is a server of chat completions, and the variables that lead to it.
func provider(t *testing.T, replies []modeltest.Reply) (*modeltest.Server, []string) {
	t.Helper()
	s := modeltest.OpenAI(modeltest.InOrder(metered(replies)...))
	wire := httptest.NewServer(s)
	t.Cleanup(wire.Close)
	return s, []string{"OPENAI_API_KEY=sk-for-tests-0123456789", "OPENAI_BASE_URL=" + wire.URL + "/v1"}
}

// researchCopy is the example in a directory of its own, with changes of its file.
func researchCopy(t *testing.T, oldnew ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(researchDir)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "swarm.toml")
	for i := 0; i < len(oldnew); i += 2 {
		if text := hosttest.ReadText(t, file); !strings.Contains(text, oldnew[i]) {
			t.Fatalf("the example's file has no %q", oldnew[i])
		}
	}
	text := strings.NewReplacer(oldnew...).Replace(hosttest.ReadText(t, file))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestResearch runs the example of a swarm that thinks as its page says: on the kept
// recording without a key, and at a provider with one.
func TestResearch(t *testing.T) {
	t.Parallel()
	p := install(t)
	t.Run("recording", func(t *testing.T) { t.Parallel(); researchRecords(t, p) })
	t.Run("with a key", func(t *testing.T) { t.Parallel(); researchAsks(t, p) })
	t.Run("scout", func(t *testing.T) { t.Parallel(); researchScouts(t, p) })
	t.Run("as data", func(t *testing.T) { t.Parallel(); researchCounts(t, p) })
	t.Run("not recorded", func(t *testing.T) { t.Parallel(); researchFails(t, p) })
}

// changing is what two recordings of one session differ in.
var changing = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[0-9:.]+Z`)

// researchRecords makes the recording as the page says, and compares it with the kept
// one: what an agent is told of itself and its tools may have changed.
func researchRecords(t *testing.T, p *installed) {
	answer := hosttest.ReadText(t, researchDir+"/answer")
	s, env := provider(t, researchReplies(t, answer))
	dir := researchCopy(t, `cassette = "cassette.jsonl"`, "cassette = \"new.jsonl\"\ncassette_mode = \"record\"")
	got := p.run(t, hosttest.ReadText(t, researchDir+"/ask"), env, "run", "-c", filepath.Join(dir, "swarm.toml"))
	if got.code != 0 || got.stdout != answer+"\n" || !strings.Contains(got.stderr, "model default  asks its provider, openai, and records to new.jsonl\n") {
		t.Fatalf("%d: %s\n%s", got.code, got.stdout, got.stderr)
	}
	made := hosttest.ReadText(t, filepath.Join(dir, "new.jsonl"))
	if n := len(s.Requests()); n != 7 || strings.Count(made, "\n") != n || strings.Contains(made, "sk-for-tests") {
		t.Errorf("%d questions, recorded as\n%s", n, made)
	}
	if *update {
		if err := os.WriteFile(researchDir+"/cassette.jsonl", []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	plain := func(text string) string { return changing.ReplaceAllString(text, "…") }
	if plain(made) != plain(hosttest.ReadText(t, researchDir+"/cassette.jsonl")) {
		t.Error("the prompts or tools have changed since examples/research was recorded; run go test ./host/internal/hosttest/pages -run TestResearch -update, and look at what has changed")
	}
}

// researchAsks has the file as it stands ask a server over HTTP, with a key.
func researchAsks(t *testing.T, p *installed) {
	s, env := provider(t, researchReplies(t, "Because of live models."))
	got := p.run(t, "", env, "run", "-c", researchDir+"/swarm.toml", "Why did beekeepers give up the skep?")
	if got.code != 0 || got.stdout != "Because of live models.\n" || !strings.Contains(got.stderr, "model default  asks its provider, openai\n") {
		t.Fatalf("%d: %s\n%s", got.code, got.stdout, got.stderr)
	}
	asked := s.Requests()
	if len(asked) != 7 {
		t.Errorf("%d questions", len(asked))
	}
	for _, r := range asked {
		var body struct {
			Model  string
			Stream bool
		}
		if err := json.Unmarshal(r.Body, &body); err != nil || body.Model != "gpt-5-mini" || !body.Stream || r.Header.Get("Authorization") != "Bearer sk-for-tests-0123456789" {
			t.Errorf("question %d: %v, %+v, %q", r.N, err, body, r.Header.Get("Authorization"))
		}
	}
	if pages := string(asked[3].Body); !strings.Contains(pages, "bee space") || !strings.Contains(pages, "burning sulphur") {
		t.Error("the pages did not reach the model")
	}
}

// researchScouts has the scout fetch a page of the one site it may go to, and nothing
// of any other.
func researchScouts(t *testing.T, p *installed) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s: skeps were common until about 1900.", r.URL.Query().Get("title"))
	}))
	t.Cleanup(site.Close)
	get := func(url string) modeltest.Reply {
		return modeltest.Reply{Calls: []modeltest.Call{call(t, "http_get", fields{"url": url})}}
	}
	s, env := provider(t, []modeltest.Reply{
		asks(t, "I ask the reader.", "reader", "When", "When were skeps given up?"),
		tells(t, "Re: When", "The pages leave it open."),
		asks(t, "A gap.", "scout", "When", "When were skeps given up?"),
		get("https://elsewhere.example/w/"),
		get(site.URL + "/w/index.php?action=raw&title=Skep"),
		tells(t, "Re: When", "Until about 1900. [Skep]"),
		{Calls: []modeltest.Call{call(t, "task_complete", fields{"finish_message": "About 1900. [Skep]"})}},
	})
	dir := researchCopy(t, `allow = { http = ["GET https://en.wikipedia.org/w/"] }`,
		fmt.Sprintf(`allow = { http = ["GET %s/w/"], http_private = true }`, site.URL))
	got := p.run(t, "", env, "run", "-c", filepath.Join(dir, "swarm.toml"), "When did beekeepers give up the skep?")
	if got.code != 0 || got.stdout != "About 1900. [Skep]\n" {
		t.Fatalf("%d: %s\n%s", got.code, got.stdout, got.stderr)
	}
	asked := s.Requests()
	if refused := string(asked[4].Body); !strings.Contains(refused, "DENIED") || !strings.Contains(refused, "elsewhere.example") {
		t.Errorf("another site: %s", refused)
	}
	if fetched := string(asked[5].Body); !strings.Contains(fetched, "Skep: skeps were common until about 1900.") {
		t.Errorf("the site: %s", fetched)
	}
}

// researchCounts has the recording played for a program, which is told nothing but
// the data; what was recorded of its tokens counts.
func researchCounts(t *testing.T, p *installed) {
	got := p.run(t, hosttest.ReadText(t, researchDir+"/ask"), []string{"OPENAI_API_KEY="}, "run", "-o", "json", "-c", researchDir+"/swarm.toml")
	var out struct {
		State, Answer string
		Usage         struct{ Tokens int64 }
	}
	if err := json.Unmarshal([]byte(got.stdout), &out); err != nil || got.code != 0 || got.stderr != "" {
		t.Fatalf("%v, %d: %s\n%s", err, got.code, got.stdout, got.stderr)
	}
	if want := int64(7*120 + 7*900 + 400*(0+1+2+3+4+5+6)); out.State != "completed" || out.Answer != hosttest.ReadText(t, researchDir+"/answer") || out.Usage.Tokens != want {
		t.Errorf("%+v, want %d tokens", out, want)
	}
}

// researchFails asks what was not recorded, without a key.
func researchFails(t *testing.T, p *installed) {
	got := p.run(t, "", nil, "run", "-c", researchDir+"/swarm.toml", "What do wasps eat?")
	if got.code != 1 || got.stdout != "" {
		t.Errorf("%d: %s", got.code, got.stdout)
	}
	for _, want := range []string{
		"model default  answers from cassette.jsonl, since OPENAI_API_KEY is not set\n",
		"the cassette cassette.jsonl has no answer to this request; set OPENAI_API_KEY to ask the provider itself, or record it anew",
	} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("no %q in\n%s", want, got.stderr)
		}
	}
}
