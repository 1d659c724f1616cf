package door

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"skep/spec/mail"
)

// hashMark begins the task ids of conversations whose own ids are no task ids.
const hashMark = "~"

// taskID is the local task of a foreign conversation, a new one for an empty id. It
// reaches no other caller's task: the key of a task begins with the caller's instance.
func taskID(conversation string) string {
	switch {
	case conversation == "":
		return uuid.NewString()
	case mail.ValidTaskID(conversation) && (!strings.HasPrefix(conversation, hashMark) || isHashed(conversation)):
		return conversation
	}
	sum := sha256.Sum256([]byte(conversation))
	return hashMark + hex.EncodeToString(sum[:])
}

// isHashed reports whether an id is one that taskID has made: a caller learns it from his
// exchange and continues under it.
func isHashed(id string) bool {
	raw, err := hex.DecodeString(strings.TrimPrefix(id, hashMark))
	return err == nil && len(raw) == sha256.Size && id == hashMark+hex.EncodeToString(raw)
}

// requestID is the request_id of a realm's message, the same for a repeat.
func requestID(key string) string { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(key)).String() }

// AgentName writes the id of a foreign agent as the name of an agent: bytes that a name
// must not have become %XX (G-010, G-011).
func AgentName(id string) (string, error) {
	var b strings.Builder
	for i, r := range id {
		plain := r != '@' && r != '%' && r != ' ' && r != '�' && mail.Printable(string(r))
		if plain {
			b.WriteRune(r)
			continue
		}
		width := len(string(r))
		if r == '�' { // an invalid byte, or the character itself
			width = 1
			if strings.HasPrefix(id[i:], "�") {
				width = len("�")
			}
		}
		for _, c := range []byte(id[i : i+width]) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	name := b.String()
	if _, _, err := mail.ParseAddr(mail.FormatAddr(name, "realm")); err != nil {
		return "", fmt.Errorf("the id %.80q is no name of an agent: %w", id, err)
	}
	return name, nil
}

// ForeignID is the inverse of [AgentName].
func ForeignID(name string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b.WriteByte(name[i])
			continue
		}
		if i+2 >= len(name) {
			return "", fmt.Errorf("the name %.80q ends within an escape", name)
		}
		raw, err := hex.DecodeString(name[i+1 : i+3])
		if err != nil {
			return "", fmt.Errorf("the name %.80q has a malformed escape", name)
		}
		b.WriteByte(raw[0])
		i += 2
	}
	return b.String(), nil
}
