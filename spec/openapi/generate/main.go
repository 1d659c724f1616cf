// Command generate owns openapi.json and openapi.html, which hosts carry: the
// same document as openapi.yaml, for programs and for people. It must not know
// what the document describes.
//
//	generate DIRECTORY    reads openapi.yaml there and writes the two beside it
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"skep/spec/openapi"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, "openapi.yaml"))
	if err != nil {
		return err
	}
	doc, err := openapi.Parse(raw)
	if err != nil {
		return fmt.Errorf("openapi.yaml: %w", err)
	}
	text, err := doc.JSON()
	if err != nil {
		return err
	}
	page, err := doc.Page()
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "openapi.json"), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "openapi.html"), page, 0o644),
	)
}
