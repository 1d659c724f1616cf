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

// likeness is what two requests must have in common to be the same: all but the ids
// and times in them, which are new in each run. Ids count by the order in which
// they come first, so that what belongs together stays together.
type likeness struct {
	digest string
	plain  string
	ids    []string
}

// passing finds what is new in each run: ids as the host makes them, and times.
var passing = regexp.MustCompile(
	`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}` +
		`|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})`)

// idLength tells an id from a time, which is shorter.
const idLength = 36

func likenessOf(req abi.ChatRequest) (likeness, error) {
	raw, err := json.Marshal(req)
	if err != nil {
		return likeness{}, err
	}
	var p likeness
	places := map[string]int{}
	p.plain = passing.ReplaceAllStringFunc(string(raw), func(found string) string {
		if len(found) != idLength || strings.Contains(found, ":") {
			return "<time>"
		}
		if places[found] == 0 {
			p.ids = append(p.ids, found)
			places[found] = len(p.ids)
		}
		return "<id " + strconv.Itoa(places[found]) + ">"
	})
	sum := sha256.Sum256([]byte(p.plain))
	p.digest = hex.EncodeToString(sum[:])
	return p, nil
}

// translate puts the ids of a live request where the recorded answer to its like
// has those of its own. Ids are of one length, so the pieces stay as they are.
func (p likeness) translate(e exchange, live likeness) (exchange, error) {
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
