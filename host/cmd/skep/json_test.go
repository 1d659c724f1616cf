package main

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// asJSON FORM CODE PROGRAM ARGS… runs a program with -o json that must exit with
// CODE, and reads what it prints. FORM is object, lines, error, or object+error.
func asJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: asjson FORM CODE PROGRAM ARGS…")
	}
	code(ts, false, append(args[1:], "-o", "json"))
	n, err := objects(ts.ReadFile("stdout"))
	ts.Check(err)
	switch form := args[0]; {
	case form == "object" && n != 1, form == "object+error" && n != 1, form == "error" && n != 0, form == "lines" && n < 2:
		ts.Fatalf("%s has %d JSON objects on stdout:\n%s", form, n, ts.ReadFile("stdout"))
	case strings.HasSuffix(form, "error"):
		ts.Check(isError(ts.ReadFile("stderr"), args[1]))
	case form != "object" && form != "lines":
		ts.Fatalf("unknown form %q", form)
	}
}

// objects counts the JSON objects of a text that has nothing else.
func objects(text string) (n int, err error) {
	for d := json.NewDecoder(strings.NewReader(text)); ; n++ {
		var one map[string]json.RawMessage
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
	}
}

// words name the exit codes, as the page on running a host has them.
var words = map[string]string{
	"1": "failed", "2": "usage", "3": "config", "4": "not_found", "5": "refused", "6": "budget",
	"7": "unreachable", "8": "check_failed", "124": "timeout", "130": "interrupted",
}

// isError wants the last line to be an error with the word of an exit code.
func isError(stderr, code string) error {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	var out struct {
		Error struct {
			Message string
			Code    string
		}
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &out); err != nil {
		return errors.New("stderr ends without an error object: " + stderr)
	}
	if out.Error.Message == "" || out.Error.Code != words[code] || words[code] == "" {
		return errors.New("exit code " + strconv.Quote(code) + " has the error " + lines[len(lines)-1])
	}
	return nil
}
