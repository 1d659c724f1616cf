// Command table owns spec/CONFORMANCE.md: which statement of MAIL 1.3 and of other
// protocols is tested by which test, and how it went, and who may call which endpoint. It
// must not know what a statement means; they are data in statements, a file for each
// protocol, endpoints in spec/openapi.yaml.
//
// A test tests a statement when its doc comment names it, as in "R-022" or "R-023
// to R-026", or the test's own name does, as in TestPost_R022_S17.
//
//	table -list            prints the arguments of go test that run these tests
//	table -results FILE    writes the table; FILE is the output of go test -json
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"skep/spec/openapi"
)

func main() {
	root := flag.String("root", ".", "the repository")
	list := flag.Bool("list", false, "print the arguments of go test")
	results := flag.String("results", "", "the output of go test -json")
	flag.Parse()
	if err := run(*root, *list, *results); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(root string, list bool, results string) error {
	tests, err := findTests(root)
	if err != nil {
		return err
	}
	if list {
		_, err = fmt.Println(arguments(tests))
		return err
	}
	out, err := os.Open(results)
	if err != nil {
		return err
	}
	defer out.Close()
	went, err := readResults(out)
	if err != nil {
		return fmt.Errorf("-results %s: %w", results, err)
	}
	statements, err := readStatements()
	if err != nil {
		return err
	}
	doc, err := readInterface(root)
	if err != nil {
		return err
	}
	deviations, err := openapi.Deviations()
	if err != nil {
		return err
	}
	text := render(statements, tests, func(_ string, of []string) string { return verdict(went, of) }) +
		renderInterface(doc, verdict(went, interfaceTests)) + renderDeviations(deviations)
	return os.WriteFile(filepath.Join(root, tablePath), []byte(text), 0o644)
}
