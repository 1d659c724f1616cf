package mail

import (
	"encoding/hex"
	"unicode/utf8"
)

// MaxTaskID is the greatest length of a task id, in characters.
const MaxTaskID = 256

// ValidTaskID reports whether s can name a task: 1 to [MaxTaskID] printable
// characters. Clients choose task ids and do not always choose UUIDs.
func ValidTaskID(s string) bool {
	return s != "" && utf8.RuneCountInString(s) <= MaxTaskID && Printable(s)
}

// ValidUUID reports whether s is a UUID in its text form: 8-4-4-4-12 hex digits
// of either case, without braces or prefix (RFC 4122 section 3). Any version and
// variant will do.
func ValidUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case !isHex(c):
			return false
		}
	}
	return true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// NewUUID returns the version 4 UUID made of random's bits, in lower case. Where
// the bits come from is the caller's business: ids made in a turn must be the
// same each time the turn is run.
func NewUUID(random [16]byte) string {
	random[6] = random[6]&0x0f | 0x40 // version 4
	random[8] = random[8]&0x3f | 0x80 // variant of RFC 4122
	x := hex.EncodeToString(random[:])
	return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}
