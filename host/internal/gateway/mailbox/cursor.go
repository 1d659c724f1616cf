package mailbox

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrCursor is the error of a text that is no cursor of a receiver.
var ErrCursor = errors.New("it is no cursor that this receiver has got")

// Cursor is the place behind a message of a receiver, by its number, for a reader that comes
// back. All before it is removed then, so a part of a hash keeps it from being taken for a
// place in another receiver's messages, or for one that was never given.
func Cursor(receiver string, number int64) string {
	if number == 0 {
		return "0"
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s", number, receiver))
	return fmt.Sprintf("%d-%x", number, sum[:6])
}

// ParseCursor returns the number of a cursor, 0 for an empty one and "0". It returns
// [ErrCursor] for one that the receiver cannot have got.
func ParseCursor(receiver, text string) (number int64, err error) {
	if text == "" {
		return 0, nil
	}
	digits, _, _ := strings.Cut(text, "-")
	number, err = strconv.ParseInt(digits, 10, 64)
	if err != nil || text != Cursor(receiver, number) {
		return 0, ErrCursor
	}
	return number, nil
}
