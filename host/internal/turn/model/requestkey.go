package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"skep/abi"
)

// requestKey identifies a request without the ids and times in it, which change with each
// run. An id is replaced by its position in the order of first appearance, so that equal
// ids stay equal.
type requestKey struct {
	digest     string
	normalized string
	ids        []string
}

// volatileValues matches what changes with each run: ids of the host, and times.
var volatileValues = regexp.MustCompile(
	`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}` +
		`|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})`)

// idLength distinguishes an id from a time, which is shorter.
const idLength = 36

func newRequestKey(req abi.ChatRequest) (requestKey, error) {
	raw, err := json.Marshal(req)
	if err != nil {
		return requestKey{}, err
	}
	var p requestKey
	places := map[string]int{}
	p.normalized = volatileValues.ReplaceAllStringFunc(string(raw), func(found string) string {
		if len(found) != idLength || strings.Contains(found, ":") {
			return "<time>"
		}
		if places[found] == 0 {
			p.ids = append(p.ids, found)
			places[found] = len(p.ids)
		}
		return "<id " + strconv.Itoa(places[found]) + ">"
	})
	sum := sha256.Sum256([]byte(p.normalized))
	p.digest = hex.EncodeToString(sum[:])
	return p, nil
}

// replaceIDs replaces the ids in a recorded answer by the ids of the live request. All ids
// have one length, so the lengths of the pieces stay valid.
func (p requestKey) replaceIDs(e exchange, live requestKey) (exchange, error) {
	var oldnew []string
	for i := range p.ids {
		oldnew = append(oldnew, p.ids[i], live.ids[i])
	}
	raw, err := json.Marshal(e.Answer)
	if err != nil {
		return exchange{}, err
	}
	out := exchange{Pieces: slices.Clone(e.Pieces)}
	err = json.Unmarshal([]byte(strings.NewReplacer(oldnew...).Replace(string(raw))), &out.Answer)
	return out, err
}
