package sqlite

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	o := opener{codec: &codec{}}
	for body, want := range map[string]string{
		"":                           "damaged",
		"\x02{}":                     "corrupt",
		"\x02\xff\xff\xff\xff\x0f{}": "at most",
		"\x03{}":                     "no keyring",
		"\x04{}":                     "corrupt",
		"\x04\xff\xff\xff\xff\x0f{}": "at most",
		"\x05{}":                     "no keyring",
		"\x06{}":                     "codec 0x06 is unknown",
		"{}":                         "codec 0x7b is unknown",
		"\x01":                       "unexpected end",
		"\x01{\"a\":":                "unexpected end",
		"\x01\"text\"":               "cannot unmarshal",
	} {
		var v struct{}
		if err := o.read([]byte(body), spot{}, &v); !errors.Is(err, errBody) || !strings.Contains(err.Error(), want) {
			t.Errorf("read(%q) = %v, want %q", body, err, want)
		}
	}
}

func TestUnknownCodecInFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(t, dir)
	if err := s.Commit(t.Context(), testStep("t1", 1)); err != nil {
		t.Fatal(err)
	}
	exec(t, openRaw(t, dir), "UPDATE tasks SET body = x'7f00'")
	_, err := s.Load(t.Context(), testStep("t1", 1).Task.Key)
	if err == nil || !strings.Contains(err.Error(), "codec 0x7f is unknown") {
		t.Errorf("Load() = %v, want an unknown codec", err)
	}
}

func TestEncodeKeepsMarkup(t *testing.T) {
	t.Parallel()
	body, err := encode(map[string]any{"a": json.RawMessage(`"<&>"`), "b": "<&>"})
	if want := "\x01" + `{"a":"<&>","b":"<&>"}`; string(body) != want || err != nil {
		t.Errorf("encode() = %q, %v, want %q", body, err, want)
	}
}

func TestStamp(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 9, 30, 0, 123456789, time.FixedZone("", 3600))
	for in, want := range map[time.Time]time.Time{
		{}:                           {},
		now:                          now,
		time.Unix(0, 0):              time.Unix(0, 0),
		time.Unix(-1, 5):             time.Unix(-1, 5),
		time.Unix(1<<60, 0):          time.Unix(0, math.MaxInt64),
		time.Unix(-1<<60, 0).Local(): {},
	} {
		if got := unstamp(stamp(in)); !got.Equal(want) {
			t.Errorf("%v is kept as %v, want %v", in, got, want)
		}
	}
}

func TestPack(t *testing.T) {
	t.Parallel()
	for _, k := range [][2]int64{{1, 1}, {1, maxSeq}, {2, 1}, {maxParent, maxSeq}} {
		id := pack(k[0], k[1])
		if id < 0 || id>>seqBits != k[0] || seqOf(id) != k[1] {
			t.Errorf("pack(%d, %d) = %d, which is (%d, %d)", k[0], k[1], id, id>>seqBits, seqOf(id))
		}
	}
	if err := errors.Join(checkSeq("row", 1), checkSeq("row", maxSeq), checkParent(1), checkParent(maxParent)); err != nil {
		t.Error(err)
	}
	for _, err := range []error{
		checkSeq("row", 0), checkSeq("row", maxSeq+1), checkParent(0), checkParent(maxParent + 1),
	} {
		if !errors.Is(err, errRange) {
			t.Errorf("check = %v, want errRange", err)
		}
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	c := newCache[int, int](10)
	for i := range 100 {
		c.put(i, i)
		if v, ok := c.get(0); !ok || v != 0 {
			t.Fatalf("after %d entries the one used all the time is gone", i)
		}
		if v, ok := c.get(i); !ok || v != i {
			t.Fatalf("get(%d) = %d, %t", i, v, ok)
		}
	}
	if n := len(c.young) + len(c.old); n > 20 {
		t.Errorf("cache of 10 holds %d entries", n)
	}
	if _, ok := c.get(50); ok {
		t.Error("an old entry is still there")
	}
	c.clear()
	if _, ok := c.get(99); ok {
		t.Error("an entry is there after clear")
	}
}
