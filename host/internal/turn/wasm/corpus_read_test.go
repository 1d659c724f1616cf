package wasm

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"skep/host/internal/turn"
	"strconv"
	"strings"
	"testing"
	"time"
)

// corpusDir holds the hostile modules; its README.md describes their files.
const corpusDir = "testdata/hostile"

// hostile is one module of the corpus and what must become of it.
type hostile struct {
	name    string // path below corpusDir, with its extension
	attacks string
	outcome string        // "refused", "ok", or an ExitKind
	step    turn.LoadStep // of a refusal
	key     string        // of the limit that decides, or empty
	err     string        // part of the error's text
	limits  turn.Limits
	ops     string // name of a fake in corpusOps
	input   int    // bytes of the turn's input
	bare    bool   // no descriptor section is added
	takes   string // limits that this module makes the host pay, besides the limit of memory
	digest  string // of the source, its beginning
}

// corpus reads the heads of all modules.
func corpus(tb testing.TB) []*hostile {
	tb.Helper()
	list, err := readCorpus()
	if err != nil {
		tb.Fatal(err)
	}
	return list
}

func readCorpus() (list []*hostile, err error) {
	err = filepath.WalkDir(corpusDir, func(path string, d fs.DirEntry, err error) error {
		ext := filepath.Ext(path)
		if err != nil || ext != ".wat" && ext != ".hex" {
			return err
		}
		h, err := readHostile(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, h)
		return nil
	})
	return list, err
}

func readHostile(path string) (*hostile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	name, err := filepath.Rel(corpusDir, path)
	h := &hostile{name: filepath.ToSlash(name), digest: hex.EncodeToString(sum[:8])}
	for lines := bufio.NewScanner(bytes.NewReader(text)); err == nil && lines.Scan(); {
		line, comment := strings.CutPrefix(lines.Text(), ";; ")
		if !comment {
			break
		}
		key, value, _ := strings.Cut(line, ": ")
		err = h.set(key, value)
	}
	if err == nil && (h.attacks == "" || h.outcome == "" || h.outcome != "ok" && h.err == "") {
		err = errors.New("a module says what it attacks, what to expect, and with which error")
	}
	return h, err
}

// set takes one line of a module's head.
func (h *hostile) set(key, value string) (err error) {
	switch key {
	case "attacks":
		h.attacks = value
	case "expect":
		words := append(strings.Fields(value), "", "")
		if h.outcome = words[0]; h.outcome == "refused" {
			h.step = turn.LoadStep(words[1])
			words = words[1:]
		}
		h.key = words[1]
	case "error":
		h.err = value
	case "limits":
		for _, limit := range strings.Fields(value) {
			err = errors.Join(err, h.limit(limit))
		}
	case "ops":
		h.ops = value
	case "input":
		h.input, err = strconv.Atoi(value)
	case "takes":
		h.takes = value
	case "descriptor":
		h.bare = value == "none"
	default:
		err = fmt.Errorf("%q is not known here", key)
	}
	return err
}

func (h *hostile) limit(text string) error {
	key, value, _ := strings.Cut(text, "=")
	n, err := strconv.ParseInt(value, 10, 64)
	switch key {
	case "memory":
		h.limits.Memory = n
	case "stack":
		h.limits.Stack = n
	case "fuel":
		h.limits.Fuel = uint64(n)
	case "start":
		h.limits.Start = uint64(n)
	case "cpu_ms":
		h.limits.CPU = time.Duration(n) * time.Millisecond
	case "output":
		h.limits.Output = n
	case "host_calls":
		h.limits.HostCalls = n
	case "host_bytes":
		h.limits.HostBytes = n
	default:
		err = fmt.Errorf("limit %q is not known here", key)
	}
	return err
}

// wasm returns the module's bytes: decoded from its notation, or as they were
// built from its text.
func (h *hostile) wasm(tb testing.TB) []byte {
	tb.Helper()
	wasm, err := h.bytes()
	if err != nil {
		tb.Fatalf("%s: %v", h.name, err)
	}
	return wasm
}

func (h *hostile) bytes() ([]byte, error) {
	path := filepath.Join(corpusDir, h.name)
	base, isText := strings.CutSuffix(path, ".wat")
	if !isText {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return decodeHex(string(text))
	}
	wasm, err := os.ReadFile(base + ".wasm")
	if errors.Is(err, fs.ErrNotExist) {
		wasm, err = unzipped(base + ".wasm.gz")
	}
	if err != nil || h.bare {
		return wasm, err
	}
	// The assembler writes no custom sections.
	b := newBuilder()
	b.custom("skep.descriptor", descriptor)
	return append(wasm, join(b.customs...)...), nil
}

func unzipped(path string) ([]byte, error) {
	zipped, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer zipped.Close()
	r, err := gzip.NewReader(zipped)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	_, err = out.ReadFrom(r)
	return out.Bytes(), err
}

// Each built module belongs to its text: the list says of which source it was
// made, and what came out.
func TestCorpusIsBuilt(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile(filepath.Join(corpusDir, "BUILT"))
	if err != nil {
		t.Fatal(err)
	}
	texts := 0
	for _, h := range corpus(t) {
		if !strings.HasSuffix(h.name, ".wat") {
			continue
		}
		texts++
		h.bare = true
		sum := sha256.Sum256(h.wasm(t))
		want := fmt.Sprintf("\n%s %s %x\n", h.name, h.digest, sum[:8])
		if !bytes.Contains(list, []byte(want)) {
			t.Errorf("%s is not what its .wasm was built from; run %s/rebuild.sh", h.name, corpusDir)
		}
	}
	if lines := bytes.Count(list, []byte("\n")) - 1; lines != texts {
		t.Errorf("BUILT lists %d modules, there are %d; run %s/rebuild.sh", lines, texts, corpusDir)
	}
}
