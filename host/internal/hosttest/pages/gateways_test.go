package pages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// TestGatewaysPage: the commands of the page on gateways do with its file what it says.
func TestGatewaysPage(t *testing.T) {
	t.Parallel()
	const page = "../../../docs/gateways.md"
	p, dir := install(t), t.TempDir()
	_, text, _ := strings.Cut(hosttest.ReadText(t, page), "```toml\n")
	text, _, _ = strings.Cut(text, "```")
	if err := os.WriteFile(filepath.Join(dir, "swarm.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.path, filepath.Join(dir, "skep")); err != nil {
		t.Fatal(err)
	}
	all := consoleOf(t, page, "Check and limit it")
	if len(all) != 6 {
		t.Fatalf("the page has %d commands", len(all))
	}
	vars := ""
	for _, s := range all {
		if strings.HasPrefix(s.command, "export ") {
			vars += s.command + "\n"
			continue
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", vars+s.command)
		cmd.Dir, cmd.Env = dir, append(p.env, "PATH="+dir+":"+os.Getenv("PATH"))
		if out, err := cmd.Output(); err != nil || !s.matches(string(out)) {
			t.Errorf("$ %s\n%s%v, want\n%s", s.command, out, err, s.output)
		}
	}
}

// protocolCell is a cell of the table of protocols: a test, and the file that has it.
var protocolCell = regexp.MustCompile(`^\[(Test\w+)\]\((\.\./internal/[\w/]+_test\.go)\)$`)

// TestProtocolTables: each cell of the page's two tables of protocols names a test that there is in
// the file to which it leads, and each protocol has most of what the first one lists.
func TestProtocolTables(t *testing.T) {
	t.Parallel()
	const docs = "../../../docs"
	tables := strings.Split(hosttest.ReadText(t, docs+"/gateways.md"), "| | A2A | ACP | AMP | IaCP | MCP | UAMP |\n|---|---|---|---|---|---|---|\n")[1:]
	if len(tables) != 2 {
		t.Fatalf("the page has %d tables", len(tables))
	}
	for i, text := range tables {
		text, _, _ = strings.Cut(text, "\n\n")
		rows := strings.Split(text, "\n")
		for column, named := range testsOf(t, docs, rows) {
			if named == 0 || i == 0 && 2*named < len(rows) {
				t.Errorf("column %d of table %d names %d tests in %d rows", column+1, i+1, named, len(rows))
			}
		}
	}
}

// testsOf counts the tests that each column of a table names.
func testsOf(t *testing.T, docs string, rows []string) (named [6]int) {
	t.Helper()
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 1+len(named) {
			t.Fatalf("the row %q has %d cells", row, len(cells))
		}
		for i, cell := range cells[1:] {
			m := protocolCell.FindStringSubmatch(cell)
			switch {
			case cell == "–":
			case m == nil:
				t.Errorf("%s: the cell %q is no test", cells[0], cell)
			case !strings.Contains(hosttest.ReadText(t, filepath.Join(docs, m[2])), "\nfunc "+m[1]+"(t *testing.T) {"):
				t.Errorf("%s: there is no %s in %s", cells[0], m[1], m[2])
			default:
				named[i]++
			}
		}
	}
	return named
}
