package cli

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"skep/host/internal/gateway/acp/dsl"
	"skep/host/internal/store/atomicfile"
)

const acpFmtHelp = `Fmt writes FILE in the one form that all .acp files have: a field a line, two spaces a
level, every comment where it was, and prints its name. A file that has the form already
is left alone. With - it reads stdin and prints the text.

Exit codes: 3 FILE has faults and is left alone, 4 it is not there.`

func (a *app) acpFmtCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "fmt FILE", Short: "Write a .acp file in the one form", Args: exactArguments("the FILE of declarations"),
		Long: acpFmtHelp, Example: "  skep acp fmt mail.acp\n  skep acp fmt - < mail.acp | diff mail.acp -",
	}
	cmd.RunE = a.command(func(cmd *cobra.Command, args []string) error { return a.acpFmt(cmd.Context(), args[0]) })
	return cmd
}

func (a *app) acpFmt(ctx context.Context, file string) error {
	text, err := a.declarationText(ctx, file)
	if err != nil {
		return a.refuseDeclarations(file, err)
	}
	tree, err := dsl.Parse(filepath.Base(file), text)
	if err != nil {
		return a.refuseDeclarations(file, placedIn(filepath.Dir(file), err))
	}
	formatted := dsl.Format(tree)
	if file == stdin {
		return a.printf("%s", formatted)
	}
	changed := formatted != text
	if changed {
		if err := rewriteFile(file, []byte(formatted)); err != nil {
			return unusableFile(file, "written", err)
		}
	}
	switch {
	case a.json():
		return a.printJSON(map[string]any{"file": file, "changed": changed})
	case changed:
		return a.printf("%s\n", file)
	}
	return nil
}

// rewriteFile is [replaceFile] for a file of the operator: it keeps its mode, and a link to it
// stays one.
func rewriteFile(path string, text []byte) error {
	if linked, err := filepath.EvalSymlinks(path); err == nil {
		path = linked
	}
	info, err := os.Stat(path)
	if err != nil {
		return replaceFile(path, text)
	}
	return atomicfile.CreateBytes(path, info.Mode().Perm(), text)
}
