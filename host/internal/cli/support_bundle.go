package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skep/host/internal/store/atomicfile"
)

const supportBundleHelp = `Support-bundle writes what somebody else needs to find out what is wrong with a host, a
.tar.gz that only you can read. FILE must not exist. It lists what is inside before it
writes:

  contents.txt       this list, and why a part is missing
  version.json       this program
  config.json        swarm.toml: agents, grants, limits, addresses
  doctor.json        what "skep doctor" finds
  plan.json          what differs between swarm.toml and what the host runs
  readyz.txt         whether the host takes work, and of what it warns
  metrics.txt        its metrics, without what agents report
  host_version.json  the version that runs
  cluster.json       the hosts that share its tasks
  tasks.json         tasks that run or wait: tenant, agent, state, since when, turns
  questions.json     calls that wait for people, without arguments

Left out are messages, arguments and answers, keys and tokens, prompts and all params,
descriptions, variables and arguments of programs, [[auth.keys]], paths and queries of
URLs, and whose tasks they are. Names of swarms, agents, models, partners, tenants and
files, ids of tasks and of agents of partners, users at brokers, client_id, issuer and
audience are inside. The host keeps no log: add lines from where its stderr goes, once
you have read them.

Secrets of the file of 8 bytes or more, and the operator's key, are replaced wherever
they are found. Keys of [[auth.keys]] are not looked for: the host keeps digests alone.
Nor is any secret of a file with a fault: what would quote the file is left out then.

Take an operator's key, beside the swarm's file, with the variables and rights of the
host's user. What cannot be had is left out; the host need not run. A part has 4 MiB at
most.`

const supportBundleExample = `  skep support-bundle hive.tar.gz
  skep support-bundle hive.tar.gz -o json | jq -r '.parts[] | select(.missing) | .name + ": " + .missing'`

func (a *app) supportBundleCommand() *cobra.Command {
	var plainHTTP bool
	cmd := &cobra.Command{
		Use: "support-bundle FILE", Short: "Write what others need to find a fault", GroupID: groupCheck,
		Long: supportBundleHelp, Example: supportBundleExample, Args: exactArguments("the FILE to write"),
	}
	plainHTTPFlag(cmd, &plainHTTP)
	cmd.RunE = a.commandOnDir(func(cmd *cobra.Command, args []string) error {
		file := args[0]
		if _, err := os.Lstat(file); err == nil {
			return failf(exitFailed, "%s is there already: choose a new name", file)
		}
		if _, err := os.Stat(filepath.Dir(file)); err != nil {
			return fmt.Errorf("%s cannot be written: %w", file, err)
		}
		b := &supportBundle{app: a}
		b.gather(cmd.Context(), plainHTTP)
		if err := context.Cause(cmd.Context()); err != nil {
			return err
		}
		if err := b.list(file); err != nil {
			return err
		}
		archive, err := b.archive(time.Now())
		if err != nil {
			return err
		}
		if err := atomicfile.CreateNew(file, 0o600, archive); err != nil {
			return fmt.Errorf("%s cannot be written: %w", file, err)
		}
		a.notef("%s: %s bytes", file, quantity(uint64(len(archive))))
		return nil
	})
	return cmd
}

// maxSupportPart bounds a part, in bytes.
const maxSupportPart = 4 << 20

// supportPart is a file of the archive, or the reason why it is missing.
type supportPart struct {
	Name    string `json:"name"`
	About   string `json:"about"`
	Bytes   int    `json:"bytes"`
	Missing string `json:"missing,omitempty"`

	content []byte
}

// supportBundle gathers the parts of an archive.
type supportBundle struct {
	app   *app
	parts []supportPart
	// secrets are taken out of all parts, should one get there, the longest first: one that begins
	// another would leave its tail.
	secrets []string
}

// add adds a part, or why there is none.
func (b *supportBundle) add(name, about string, content []byte, err error) {
	p := supportPart{Name: name, About: about, content: b.scrub(content)}
	if p.Bytes = len(p.content); err == nil && p.Bytes > maxSupportPart {
		err = fmt.Errorf("it has %d bytes, at most %d", p.Bytes, maxSupportPart)
	}
	if err != nil {
		p.content, p.Bytes = nil, 0
		p.Missing = string(b.scrub([]byte(inLine(explain(err).Error()))))
	}
	b.parts = append(b.parts, p)
}

// minSecret is the length of the shortest secret that is looked for, in bytes: shorter ones are part
// of any text, where the gap would show them, and of JSON, as true and 1000 are.
const minSecret = 8

// addSecrets has secrets looked for.
func (b *supportBundle) addSecrets(secrets ...string) {
	for _, secret := range secrets {
		if len(secret) >= minSecret {
			b.secrets = append(b.secrets, secret)
		}
	}
	slices.SortFunc(b.secrets, func(x, y string) int { return len(y) - len(x) })
}

// quotedURL is a URL in a text or in a string of JSON, up to a space or the end of the string.
var quotedURL = regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://)((?:[^/?#\s"\\]|\\[^"bfnrt\s])*)(?:[^\s"\\]|\\[^"bfnrt\s])*`)

// scrub replaces secrets, in texts and in JSON, and leaves of URLs the host alone.
func (b *supportBundle) scrub(text []byte) []byte {
	for _, secret := range b.secrets {
		quoted, err := json.Marshal(secret)
		if err != nil {
			panic(err) // it is a text
		}
		for _, form := range []string{secret, string(quoted[1 : len(quoted)-1])} {
			text = bytes.ReplaceAll(text, []byte(form), []byte("[secret]"))
		}
	}
	return quotedURL.ReplaceAllFunc(text, func(url []byte) []byte {
		part := quotedURL.FindSubmatch(url)
		return slices.Concat(part[1], part[2][bytes.LastIndexByte(part[2], '@')+1:])
	})
}

// list shows what is inside.
func (b *supportBundle) list(file string) error {
	if b.app.json() {
		return b.app.printJSON(struct {
			File  string        `json:"file"`
			Parts []supportPart `json:"parts"`
		}{file, b.parts})
	}
	return b.app.printf("%s", b.contents())
}

// contents has a line for each part.
func (b *supportBundle) contents() string {
	var text strings.Builder
	for _, p := range b.parts {
		size := strconv.Itoa(p.Bytes)
		if p.Missing != "" {
			size = "-"
		}
		fmt.Fprintf(&text, "%s  %s  %s", pad(p.Name, len("host_version.json")), pad(size, len("4194304")), p.About)
		if p.Missing != "" {
			fmt.Fprintf(&text, "; missing: %s", p.Missing)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// archive packs the parts.
func (b *supportBundle) archive(now time.Time) ([]byte, error) {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	files := tar.NewWriter(packed)
	put := func(name string, content []byte) error {
		h := &tar.Header{Name: "skep-support/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: now, Typeflag: tar.TypeReg}
		if err := files.WriteHeader(h); err != nil {
			return err
		}
		_, err := io.Copy(files, bytes.NewReader(content))
		return err
	}
	err := put("contents.txt", []byte(b.contents()))
	for _, p := range b.parts {
		if p.Missing == "" {
			err = errors.Join(err, put(p.Name, p.content))
		}
	}
	err = errors.Join(err, files.Close(), packed.Close())
	return out.Bytes(), err
}
