package sqlite

import (
	"database/sql"
	"errors"
)

// expectations are the statements of a group of which it is not known yet whether they change
// a row. To ask a server costs a round trip, so a group asks for all of them at its end. One
// that has changed none makes the group begin again, and ask for each at once.
type expectations struct {
	// waiting: the group in hand asks at its end.
	waiting  bool
	expected []sql.Result
}

// errUnexpected: a statement that was expected to change a row has changed none.
var errUnexpected = errors.New("a key of the group is taken")

// changes reports whether a statement has changed a row, or that it is expected to.
func (e *expectations) changes(r sql.Result) (bool, error) {
	if e.waiting {
		e.expected = append(e.expected, r)
		return true, nil
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// checkExpected returns errUnexpected when one of the group's statements has changed no row.
func (e *expectations) checkExpected() error {
	for _, r := range e.expected {
		n, err := r.RowsAffected()
		if err != nil {
			return err
		}
		if n == 0 {
			return errUnexpected
		}
	}
	return nil
}

// expectAnew forgets the statements of the last group.
func (e *expectations) expectAnew(waiting bool) {
	clear(e.expected)
	e.waiting, e.expected = waiting, e.expected[:0]
}
