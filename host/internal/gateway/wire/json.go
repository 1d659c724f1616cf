package wire

import (
	"errors"
	"fmt"
)

// CheckJSON returns why a text has no or more than one reading as a JSON value, or is
// nested deeper than the max_depth of a gateway: decoders take duplicate members, broken
// UTF-8 and halves of surrogate pairs, each in its own way.
func CheckJSON(text []byte, gateway string, maxDepth int) error {
	_, err := Canonical(text, AsSent, maxDepth)
	if errors.Is(err, ErrDeep) {
		return fmt.Errorf("is nested deeper than max_depth of [gateways.%s]", gateway)
	}
	return err
}
