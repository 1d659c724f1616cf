package postgres

import (
	"context"
	"errors"
	"fmt"
)

// block is a range of numbers for new rows of a table, which a sequence of the server has given
// to this connection alone. What is left of it when the connection ends is given to no row.
type block struct{ next, end int64 }

// takeBlock takes as many numbers as the sequence of a column steps by.
const takeBlock = `WITH s AS (SELECT pg_get_serial_sequence('%s', '%s')::regclass AS id)
	SELECT nextval(id), (SELECT seqincrement FROM pg_sequence WHERE seqrelid = id) FROM s`

// nextNumber returns the number of the next row of a table.
func (c *Conn) nextNumber(ctx context.Context, table string) (int64, error) {
	b := c.blocks[table]
	if b == nil || b.next == b.end {
		if _, err := c.send(ctx, nil); err != nil {
			return 0, err
		}
		row, err := c.ask(ctx, fmt.Sprintf(takeBlock, table, c.numbers[table]))
		if err != nil {
			return 0, err
		}
		if len(row) != 2 {
			return 0, errors.New("the server has no numbers for rows of " + table)
		}
		if c.blocks == nil {
			c.blocks = map[string]*block{}
		}
		b = &block{row[0], row[0] + row[1]}
		c.blocks[table] = b
	}
	b.next++
	return b.next - 1, nil
}
