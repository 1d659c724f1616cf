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
	for _, line := range want {
		if !strings.Contains(string(text), line) {
			t.Errorf("ABI.md lacks %q", line)
		}
	}
}
