package wasm

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm/binary"
)

// checkContract refuses a module that violates the ABI, before it is compiled.
func checkContract(m *binary.Module) error {
	if err := checkMarker(m); err != nil {
		return err
	}
	if err := checkImports(m); err != nil {
		return err
	}
	return checkExports(m)
}

// checkMarker requires exactly one marker, of the ABI version of this host.
func checkMarker(m *binary.Module) error {
	var versions []string
	for _, e := range m.Exports {
		if version, ok := strings.CutPrefix(e.Name, abi.MarkerPrefix); ok {
			versions = append(versions, version)
		}
	}
	want := strconv.Itoa(abi.Version)
	switch {
	case len(versions) == 0 && isProgram(m):
		return fmt.Errorf("no %s%s export: %s, with a skep SDK for ABI %s", abi.MarkerPrefix, want, asReactor, want)
	case len(versions) == 0:
		return fmt.Errorf("no %s%s export: this is no skep agent; build it with a skep SDK for ABI %s, as a reactor (-buildmode=c-shared in Go)",
			abi.MarkerPrefix, want, want)
	case len(versions) > 1:
		return fmt.Errorf("several markers, for ABI %s, and this host speaks ABI %s: rebuild the module with one SDK, for ABI %s",
			turn.Clip(printable(strings.Join(versions, " and ")), turn.MaxMessage), want, want)
	case versions[0] != want:
		version := printable(versions[0])
		return abi.Mismatch("the marker "+abi.MarkerPrefix+version, version)
	}
	return nil
}

// asReactor is the advice for a module that isProgram.
const asReactor = "it is built as a program; build it as a reactor (Go: -buildmode=c-shared)"

// isProgram reports whether a module is one that is run from its start to its end.
func isProgram(m *binary.Module) bool {
	_, starts := m.Export("_start")
	_, initializes := m.Export(abi.ExportInitialize)
	return starts && !initializes
}

// checkImports requires every import to be a function that the host offers.
func checkImports(m *binary.Module) error {
	offered := hostFuncs()
	for _, imp := range m.Imports {
		name := printable(imp.Module + "." + imp.Name)
		if imp.Kind != binary.KindFunc {
			return fmt.Errorf("imports %s, which is no function; a module brings its own memory, tables and globals", name)
		}
		has := typeText(m.Types[imp.Type])
		i := slices.IndexFunc(offered, func(f hostFunc) bool { return f.module == imp.Module && f.name == imp.Name })
		if i < 0 {
			return unknownImport(imp, has)
		}
		if want := signature(offered[i].params, offered[i].results); want != has {
			return fmt.Errorf("imports %s as %s, but it is %s; rebuild it with an SDK for ABI %d", name, has, want, abi.Version)
		}
	}
	return nil
}

// unknownImport refuses an import that the host does not have, with advice.
func unknownImport(imp binary.Import, has string) error {
	name := printable(imp.Module + "." + imp.Name)
	if version, ok := strings.CutPrefix(imp.Module, importPrefix); ok && imp.Module != abi.ImportModule {
		return abi.Mismatch("the import "+name, printable(version))
	}
	advice := "only " + abi.ImportModule + " and a subset of " + wasiModule + " can be imported"
	switch imp.Module {
	case abi.ImportModule:
		advice = fmt.Sprintf("the module may be for a newer skep: upgrade skep, or rebuild the module without it, with an SDK for ABI %d", abi.Version)
	case wasiModule:
		advice = "agents have no files, sockets or processes: avoid what needs them"
	}
	return fmt.Errorf("imports %s %s, which this host (ABI %d) does not offer; %s", name, has, abi.Version, advice)
}

// printable quotes a name that would act on a terminal, or read as another one.
func printable(name string) string {
	if strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return strconv.QuoteToASCII(name)
	}
	return name
}

// importPrefix and a version are the import module of that version.
const importPrefix = "skep_v"

// exports are the functions the host may call, with their types.
var exports = []struct {
	name      string
	params    []binary.ValType
	results   []binary.ValType
	mandatory bool
}{
	{abi.MarkerPrefix + strconv.Itoa(abi.Version), nil, nil, true},
	{abi.ExportTurn, []binary.ValType{binary.I32}, []binary.ValType{binary.I32}, true},
	{abi.ExportAction, []binary.ValType{binary.I32}, []binary.ValType{binary.I32}, false},
	{abi.ExportDescribe, nil, []binary.ValType{binary.I32}, false},
	{abi.ExportWarm, nil, []binary.ValType{binary.I32}, false},
	{abi.ExportInitialize, nil, nil, false},
}

func checkExports(m *binary.Module) error {
	if e, ok := m.Export(abi.ExportMemory); !ok || e.Kind != binary.KindMemory {
		return fmt.Errorf("no memory exported as %q; the host reads and writes it", abi.ExportMemory)
	}
	for _, want := range exports {
		e, ok := m.Export(want.name)
		if !ok {
			if want.mandatory {
				return fmt.Errorf("no function exported as %q; an agent must have one", want.name)
			}
			continue
		}
		wanted := typeText(binary.FuncType{Params: want.params, Results: want.results})
		if e.Kind != binary.KindFunc {
			return fmt.Errorf("exports %q, but not as a function %s", want.name, wanted)
		}
		t, _ := m.FuncType(e.Index) // admitted, so it is there
		if has := typeText(t); has != wanted {
			return fmt.Errorf("exports %s as %s, but it must be %s", want.name, has, wanted)
		}
	}
	_, described := m.Export(abi.ExportDescribe)
	if !described && len(m.Custom(abi.DescriptorSection)) == 0 {
		return errors.New("no descriptor: add a custom section " + abi.DescriptorSection + " or export " + abi.ExportDescribe)
	}
	return nil
}

func typeText(t binary.FuncType) string {
	text := func(list []binary.ValType) string {
		names := make([]string, len(list))
		for i, v := range list {
			names[i] = v.String()
		}
		return strings.Join(names, ", ")
	}
	return "(" + text(t.Params) + ") -> (" + text(t.Results) + ")"
}
