package federation_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// pageFile is the file of a page that stands under its name.
func pageFile(t *testing.T, page, name string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "`"+name+"`:\n\n```toml\n")
	file, _, closed := strings.Cut(rest, "\n```\n")
	if !found || !closed {
		t.Fatalf("%s does not show %s", page, name)
	}
	return file + "\n"
}

// The two files of the page are all it takes for two hosts to work together, both
// ways, with the keys where the page's table has them.
func TestPeersPage(t *testing.T) {
	t.Parallel()
	u := &federation{map[string]*hosttest.Site{}, map[string]*link{"hive": newLink(t), "depot": newLink(t)}}
	variable := regexp.MustCompile(`env::([A-Z_]+)`)
	for name := range u.links {
		file := pageFile(t, "../../../docs/peers.md", name+"/swarm.toml")
		file = strings.NewReplacer("https://hive.example", u.links["hive"].URL, "https://depot.example", u.links["depot"].URL).Replace(file)
		u.sites[name] = hosttest.NewSite(t, variable.ReplaceAllString(file, "the-key-$1"))
		u.links[name].setTarget("http://" + u.sites[name].Addr())
	}
	for from, to := range map[string]string{"hive": "stock@depot", "depot": "boss@hive"} {
		a, err := u.sites[from].As("the-key-OPS_AT_"+strings.ToUpper(from)).PostMessage(t.Context(), client.Post{Body: hosttest.RequestOf(to, "valve 17"), Subject: "q"})
		if err != nil || !strings.Contains(a.Body, "got [::interswarm_task_complete::]") || !strings.Contains(a.Body, "valve 17") {
			t.Errorf("%s asks %s: %+v, %v", from, to, a, err)
		}
	}
}
