package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"skep/host/internal/guests"
)

// tool returns what to call a compiler: what the environment says, as for make.
func tool(variable, otherwise string) string { return cmp.Or(os.Getenv(variable), otherwise) }

// asc is AssemblyScript's compiler, which npm install puts beside the SDK.
func asc() string {
	return tool("ASC", filepath.Join(guests.Root(), "sdk", "assemblyscript", "node_modules", ".bin", "asc"))
}

// passTools lets a script reach the compilers of the machine, and what they keep.
func passTools(env *testscript.Env) error {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("go env GOCACHE: %w", err)
	}
	env.Setenv("GOCACHE", strings.TrimSpace(string(out)))
	for variable, otherwise := range map[string]string{
		"ASC": asc(), "CC": "cc", "CLANG": "clang", "WASM_LD": "wasm-ld", "CARGO": "cargo", "RUSTC": "rustc",
	} {
		env.Setenv(variable, tool(variable, otherwise))
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	env.Setenv("CARGO_HOME", tool("CARGO_HOME", filepath.Join(home, ".cargo")))
	env.Setenv("RUSTUP_HOME", tool("RUSTUP_HOME", filepath.Join(home, ".rustup")))
	return nil
}

// builds is the condition builds:LANGUAGE, which holds if the compilers of a language are here, and wine.
// Where they are required, as in CI, it is an error that they are not.
func builds(condition string) (bool, error) {
	here := false
	switch condition {
	case "wine": // the program is that of Windows
		return os.Getenv("SKEP_WINE") != "", nil
	case "builds:c":
		here = has("make", tool("CC", "cc"), tool("CLANG", "clang"), tool("WASM_LD", "wasm-ld"))
	case "builds:assemblyscript":
		here = has("make", "node", asc())
	case "builds:rust":
		here = has(tool("CARGO", "cargo"), tool("RUSTC", "rustc")) && hasWasmStd()
	default:
		return false, fmt.Errorf("unknown condition %q", condition)
	}
	if !here && guests.ToolchainsRequired() {
		return false, fmt.Errorf("%s does not hold, and all toolchains are required", condition)
	}
	return here, nil
}

func has(programs ...string) bool {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return false
		}
	}
	return true
}

// hasWasmStd looks for Rust's standard library for modules.
func hasWasmStd() bool {
	out, err := exec.Command(tool("RUSTC", "rustc"), "--print", "target-libdir", "--target", "wasm32-unknown-unknown").Output()
	if err != nil {
		return false
	}
	libs, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "libstd-*.rlib"))
	return err == nil && len(libs) > 0
}
