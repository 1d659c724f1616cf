// Command generate owns host/docs/settings.md, the reference of all keys of
// swarm.toml. It must not know any key: it prints the declarations of package
// config.
//
//	generate FILE    writes the page
package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"

	"skep/host/internal/definition/config"
)

const intro = `# Settings

<!-- Generated from the declarations in host/internal/definition/config; change them and run make generate. -->

Every key of ` + "`swarm.toml`" + `, its type, its default and what it may be. ` + "`skep validate --explain`" + ` lists the limits that are in force for one file; [Compose a swarm](compose.md) says how a file is put together. The file begins with ` + "`schema = 1`" + `.

| type | is written |
|---|---|
| size | bytes: ` + "`\"64MiB\"`, `\"512KB\"` or `65536`" + ` |
| duration | ` + "`\"250ms\"`, `\"1h30m\"` or `\"7d\"`" + ` |
| number | ` + "`1000` or `1_000`" + ` |
| dollars | ` + "`2` or `0.5`" + ` |
| string, and all that are none of these | text; ` + "`\"env::NAME\"`" + ` takes a variable of the environment, ` + "`\"file::PATH\"`" + ` the text of a file. Sizes, durations, numbers and booleans may be taken so, too |

A [definition over the network](reload.md) has ` + "`[swarm]`, `[agents.NAME]` and `[actions.NAME]`" + ` alone. The last column says what it may have there: *any* value, *within* what the file gives the same module, *the same* as the file or nothing, or *none*, since the key is the operator's.
`

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], page(config.Sections()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// page writes all sections.
func page(sections []config.Section) []byte {
	b := bytes.NewBufferString(intro)
	for _, s := range sections {
		writeSection(b, s)
	}
	return b.Bytes()
}

// writeSection writes a heading and a table of settings, and after it the sections
// nested in it.
func writeSection(b *bytes.Buffer, s config.Section) {
	fmt.Fprintf(b, "\n## `%s`\n\n%s\n", s.Name, s.About)
	if len(s.Settings) == 0 {
		return
	}
	b.WriteString("\n| key | type | default | allowed | what it is |")
	if s.Network {
		b.WriteString(" over the network |\n|---|---|---|---|---|---|\n")
	} else {
		b.WriteString("\n|---|---|---|---|---|\n")
	}
	var nested []config.Section
	for _, key := range s.Settings {
		writeRow(b, key, s.Network)
		if key.Nested != nil {
			name := strings.TrimSuffix(s.Name, "]") + "." + key.Key + "]"
			nested = append(nested, config.Section{Name: name, About: key.About, Settings: key.Nested, Network: s.Network})
		}
	}
	for _, n := range nested {
		writeSection(b, n)
	}
}

func writeRow(b *bytes.Buffer, s config.Setting, network bool) {
	standard, about := grouped(s.Default), s.About
	switch {
	case s.Required:
		standard = "**required**"
	case standard == "":
		standard = "none"
	case s.Kind == "string" || s.Kind == "address":
		standard = "`\"" + standard + "\"`"
	}
	if s.Nested != nil {
		standard, about = "", "See below."
	}
	if s.Sandbox {
		about += " For modules; a process has none."
	}
	if !s.Built() {
		about += " Not built yet."
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |", s.Key, s.Kind, standard, grouped(s.Allowed), about)
	if network {
		fmt.Fprintf(b, " %s |", overNetwork(s))
	}
	b.WriteByte('\n')
}

// overNetwork is what a definition over the network may have.
func overNetwork(s config.Setting) string {
	switch {
	case s.Operator:
		return "none"
	case s.Same:
		return "the same"
	case s.Nested != nil:
		return ""
	case s.Rule != config.Free:
		return "within"
	}
	return "any"
}

// digits match a number that is long enough to be grouped.
var digits = regexp.MustCompile(`\b[0-9]{5,}\b`)

// grouped writes long numbers as TOML can: 200_000_000_000.
func grouped(text string) string {
	return digits.ReplaceAllStringFunc(text, func(number string) string {
		for at := len(number) - 3; at > 0; at -= 3 {
			number = number[:at] + "_" + number[at:]
		}
		return number
	})
}
