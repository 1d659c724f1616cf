package amp

import (
	"encoding/hex"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
)

// maxChanges is how many of the last changes of a context are known, so that a repeat of one changes
// nothing.
const maxChanges = 64

// changeID identifies a change of a context: the message or the call that asks for it. The zero
// value is of a message without an id, which repeats none.
type changeID struct {
	id     string // without spaces
	digest string // of what is asked for
}

// changeOf is the change that a message of a caller asks for.
func changeOf(c gateway.Caller, id string, digest [32]byte) changeID {
	if id == "" {
		return changeID{}
	}
	return changeID{ownID("change", c, id), hex.EncodeToString(digest[:8])}
}

// hasChange reports whether a change was done, and refuses another one under its id.
func (c sharedContext) hasChange(of changeID) (bool, error) {
	for _, done := range c.Changes {
		if id, digest, _ := strings.Cut(done, " "); of.id != "" && id == of.id {
			if digest != of.digest {
				return true, message.Faultf(message.InvalidSchema, message.ReasonConflict, "the id of the message was used for another change of the context")
			}
			return true, nil
		}
	}
	return false, nil
}

// addChange notes a change and gives the context its next version.
func (c *sharedContext) addChange(of changeID) {
	c.Version = versionAfter(c.Version)
	if of.id == "" {
		return
	}
	c.Changes = append(c.Changes, of.id+" "+of.digest)
	c.Changes = c.Changes[max(0, len(c.Changes)-maxChanges):]
}
