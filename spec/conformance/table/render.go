package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
)

// tablePath is where the table lies in the repository.
const tablePath = "spec/CONFORMANCE.md"

// statementFiles are the files of statements, one a protocol, in the order of the table.
var statementFiles = []string{"mail.json", "gateways.json", "a2a.json", "acp.json", "amp.json", "iacp.json", "mcp.json", "uamp.json"}

//go:embed statements
var statementsFS embed.FS

// statement is something a protocol asks for, in our own words.
type statement struct {
	ID    string `json:"id"`
	Level string `json:"level"`
	Text  string `json:"text"`
	// Open is why no test is due yet; empty means that one is.
	Open string `json:"open"`
}

// chapter is a table of its own.
type chapter struct {
	Title      string      `json:"title"`
	Text       string      `json:"text"`
	Statements []statement `json:"statements"`
}

func readStatements() (chapters []chapter, err error) {
	for _, name := range statementFiles {
		raw, err := statementsFS.ReadFile("statements/" + name)
		if err != nil {
			return nil, err
		}
		var some []chapter
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&some); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		chapters = append(chapters, some...)
	}
	return chapters, nil
}

const preface = `# What of MAIL 1.3 and other protocols is tested

Made by ` + "`make conformance`" + ` from the files in spec/conformance/table/statements, one a
protocol, from the tests that name a statement, and from how they went. Edit those, not this file.
`

// render writes the table. result returns how the tests of a statement went.
func render(chapters []chapter, tests map[string][]string, result func(id string, of []string) string) string {
	var b strings.Builder
	b.WriteString(preface)
	for _, c := range chapters {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| id | level | statement | tests | result |\n|---|---|---|---|---|\n", c.Title, c.Text)
		for _, s := range c.Statements {
			how := s.Open
			if of := tests[s.ID]; len(of) > 0 {
				how = result(s.ID, of)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", s.ID, s.Level, s.Text, strings.Join(tests[s.ID], ", "), how)
		}
	}
	return b.String()
}
