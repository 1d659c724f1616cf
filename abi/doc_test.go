package abi_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"skep/abi"
)

// The page people implement from must name every number the code has.
func TestDocumentHasEveryNumber(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("ABI.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	classes := map[abi.Class]string{
		abi.ClassPure: "pure", abi.ClassStaged: "staged", abi.ClassImmediate: "immediate",
		abi.ClassEffect: "effect", abi.ClassByTool: "by tool", abi.ClassNone: "–",
	}
	for _, op := range abi.Ops() {
		want = append(want, fmt.Sprintf("| %d | `%s` | %s |", op.Op, op.Name, classes[op.Class]))
	}
	for c := abi.CodeInvalid; c <= abi.CodeInternal; c++ {
		want = append(want, fmt.Sprintf("| %d | %s |", c, c))
	}
	for _, name := range []string{
		abi.ExportMemory, abi.ExportInitialize, abi.ExportDescribe, abi.ExportTurn, abi.ExportAction, abi.ExportWarm,
		fmt.Sprint(abi.MarkerPrefix, abi.Version),
		abi.ImportInputRead, abi.ImportOutputWrite, abi.ImportCall, abi.ImportSubmit, abi.ImportWait, abi.ImportRead,
		abi.ImportClose, abi.ImportAbort,
	} {
		want = append(want, "| `"+name+"` |")
	}
	want = append(want, "This host has built "+built()+".")
	for _, line := range want {
		if !strings.Contains(string(text), line) {
			t.Errorf("ABI.md lacks %q", line)
		}
	}
}

// built lists the ops a host has, as prose: "0 to 4, 10 and 12".
func built() string {
	var numbers []abi.Op
	for _, op := range abi.Ops() {
		if op.Built {
			numbers = append(numbers, op.Op)
		}
	}
	var parts []string
	for i := 0; i < len(numbers); i++ {
		first := i
		for i+1 < len(numbers) && numbers[i+1] == numbers[i]+1 {
			i++
		}
		switch i - first {
		case 0:
			parts = append(parts, fmt.Sprintf("%d", numbers[i]))
		case 1:
			parts = append(parts, fmt.Sprintf("%d", numbers[first]), fmt.Sprintf("%d", numbers[i]))
		default:
			parts = append(parts, fmt.Sprintf("%d to %d", numbers[first], numbers[i]))
		}
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}
