package gen

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/gateway/acp/check"
	"skep/host/internal/gateway/acp/dsl"
)

// the checks of the host refuse and accept what the table of samples wants.
func TestSamples(t *testing.T) {
	t.Parallel()
	s := load(t, "agreement.acp", agreementText(t))
	accepted := 0
	for _, c := range samples() {
		got := ""
		if err := check.Message(s.Find(c.typ), []byte(c.text)); err != nil {
			got = err.Error()
		} else {
			accepted++
		}
		if got != c.want {
			t.Errorf("%s %.200s: %q, want %q", c.typ, c.text, got, c.want)
		}
	}
	if n := len(samples()); n < 200 || accepted < 80 || n-accepted < 80 {
		t.Errorf("%d samples, %d accepted", n, accepted)
	}
}

// Code of Go is laid out as gofmt has it, whatever names and comments are declared.
func TestGoLayout(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Long", 20)
	odd := "// # A heading\n//\n//  - a list\n//\tits next line\n//   indented {\n// case\n// }\n"
	for name, text := range map[string]string{
		"document.acp":  readFile(t, "testdata/document.acp"),
		"probe.acp":     readFile(t, "testdata/probe.acp"),
		"agreement.acp": agreementText(t),
		"long.acp": "type " + long + " = {" + long + ": Map<String, List<" + long + "E>>?, a: Int, // short\n b" + long + ": " + long + "W }\n" +
			"enum " + long + "E { A, B" + long + " }\ntype " + long + "W = Map<String, Long>\n",
		"odd.acp": odd + "type T = {\n" + odd + "a: String,\n" + odd + "bb: Int?\n}\n" + odd + "enum E {\n" + odd + "A,\nB\n}\n" + odd + "type L = List<T>\n",
	} {
		for _, f := range generate(t, "go", load(t, name, text)) {
			want, err := format.Source([]byte(f.Text))
			if diff := cmp.Diff(string(want), f.Text); diff != "" || err != nil {
				t.Errorf("%s of %s: %v: %s", f.Name, name, err, diff)
			}
		}
	}
}

// writeFiles writes generated files into a new directory.
func writeFiles(t testing.TB, dir string, files []File) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.Text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// command runs a command in a directory.
func command(t testing.TB, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%.6000s", name, args, err, out)
	}
}

// feed gives a harness the samples and returns its answers: "+" and what it wrote, or
// "-" and why it refused.
func feed(t testing.TB, all []sample, dir, name string, args ...string) (answers []string) {
	t.Helper()
	var in, stderr bytes.Buffer
	for _, c := range all {
		fmt.Fprintf(&in, "%s %s\n", c.typ, base64.StdEncoding.EncodeToString([]byte(c.text)))
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, &in, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%.4000s", name, err, stderr.Bytes())
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		raw, err := base64.StdEncoding.DecodeString(lines.Text()[1:])
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, lines.Text()[:1]+string(raw))
	}
	if len(answers) != len(all) {
		t.Fatalf("%d answers to %d texts\n%.4000s", len(answers), len(all), stderr.Bytes())
	}
	return answers
}

// checkAnswers compares answers with what is wanted: the reason of a refusal, or the
// message itself. A second reading of what was written gives the same.
func checkAnswers(t testing.TB, all []sample, answers []string) {
	t.Helper()
	for i, c := range all {
		want := "-" + c.want
		if c.want == "" {
			want = "+" + canonical(t, c.text)
		}
		got := answers[i]
		if strings.HasPrefix(got, "+") {
			got = "+" + canonical(t, got[1:])
		}
		if got != want {
			t.Errorf("%s %.300s:\n got %.300s\nwant %.300s", c.typ, c.text, got, want)
		}
	}
}

// harnessTypes are the records that samples are read as.
func harnessTypes(s *dsl.Schema) (all []*dsl.Type) {
	wanted := map[string]bool{}
	for _, c := range samples() {
		wanted[c.typ] = true
	}
	for _, r := range s.Records() {
		if wanted[r.Name] {
			all = append(all, r)
		}
	}
	return all
}

const goHarness = `package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"harness/messages"
)

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 4<<20)
	for in.Scan() {
		name, coded, _ := strings.Cut(in.Text(), " ")
		text, err := base64.StdEncoding.DecodeString(coded)
		if err != nil {
			panic(err)
		}
		var message interface {
			UnmarshalJSON([]byte) error
			MarshalJSON() ([]byte, error)
			Validate() error
		}
		switch name {
		%s
		}
		answer := "+"
		if err = message.UnmarshalJSON(text); err == nil {
			err = message.Validate()
		}
		if err == nil {
			text, err = json.Marshal(message)
		}
		if err != nil {
			answer, text = "-", []byte(err.Error())
		}
		fmt.Println(answer + base64.StdEncoding.EncodeToString(text))
	}
}
`

// generated Go compiles and answers as the host does.
func TestGo(t *testing.T) {
	t.Parallel()
	s, dir := load(t, "agreement.acp", agreementText(t)), t.TempDir()
	writeFiles(t, filepath.Join(dir, "messages"), generate(t, "go", s))
	cases := ""
	for _, r := range harnessTypes(s) {
		cases += fmt.Sprintf("case %q:\n\t\t\tmessage = new(messages.%s)\n\t\t", r.Name, dsl.Pascal(r.Name))
	}
	writeFiles(t, dir, []File{{"go.mod", "module harness\n\ngo 1.26\n"}, {"main.go", fmt.Sprintf(goHarness, cases)}})
	command(t, dir, []string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off"}, "go", "build", "-o", "harness", ".")
	checkAnswers(t, samples(), feed(t, samples(), dir, filepath.Join(dir, "harness")))
}
