// Command systems type-checks the root module, tests included, for the systems that its
// arguments name. A package may have errors if .ci/unported lists it, or a package that
// it imports. It compiles nothing: go vet would first compile SQLite for each system.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

const unportedFile = ".ci/unported"

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(systems []string, out io.Writer) error {
	list, err := readUnported(unportedFile)
	if err != nil {
		return err
	}
	var faults []error
	for _, system := range systems {
		sum, err := list.check(system)
		fmt.Fprintf(out, "%s: %d packages and tests checked, %d not ported\n", system, sum.sound, sum.unported)
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// unported says of packages of a system what does not build there: "all" of it or its
// "tests".
type unported map[string]string

func unportedKey(system, pkg string) string { return system + " " + pkg }

// readUnported reads lines of a system, what does not build, and a package.
func readUnported(path string) (unported, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list := unported{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var system, what, pkg string
		if _, err := fmt.Sscan(lines.Text(), &system, &what, &pkg); err != nil || what != "all" && what != "tests" {
			return nil, fmt.Errorf("%s: %q is not SYSTEM all|tests PACKAGE", path, lines.Text())
		}
		list[unportedKey(system, pkg)] = what
	}
	return list, lines.Err()
}

// summary counts the packages and tests of a system.
type summary struct{ sound, unported int }

// check type-checks all packages for a system. An entry of the list that is not needed is
// an error too.
func (u unported) check(system string) (sum summary, err error) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
		Tests: true,
		Env:   append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
	}, "./...")
	if err != nil {
		return sum, fmt.Errorf("%s: %w", system, err)
	}
	var faults []error
	for _, p := range loaded {
		switch {
		case u.mayFail(system, p, map[*packages.Package]bool{}):
			sum.unported++
		case len(p.Errors) > 0:
			faults = append(faults, fmt.Errorf("%s: %s: %w", system, p.ID, p.Errors[0]))
		default:
			sum.sound++
		}
	}
	return sum, errors.Join(append(faults, u.unneeded(system, loaded))...)
}

// mayFail reports whether a package, or one that it imports, is listed.
func (u unported) mayFail(system string, p *packages.Package, seen map[*packages.Package]bool) bool {
	if seen[p] {
		return false
	}
	seen[p] = true
	switch u[unportedKey(system, packagePath(p))] {
	case "all":
		return true
	case "tests":
		if p.ID != p.PkgPath { // compiled for a test
			return true
		}
	}
	for _, imported := range p.Imports {
		if u.mayFail(system, imported, seen) {
			return true
		}
	}
	return false
}

// packagePath is the path of the package that a test belongs to.
func packagePath(p *packages.Package) string {
	return strings.TrimSuffix(strings.TrimSuffix(p.PkgPath, ".test"), "_test")
}

// unneeded finds entries of packages without errors.
func (u unported) unneeded(system string, loaded []*packages.Package) error {
	broken := map[string]bool{}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			broken[unportedKey(system, packagePath(p))] = true
		}
	}
	var faults []error
	for key := range u {
		if strings.HasPrefix(key, system+" ") && !broken[key] {
			faults = append(faults, fmt.Errorf("%s: %q builds: remove its line", unportedFile, key))
		}
	}
	return errors.Join(faults...)
}
