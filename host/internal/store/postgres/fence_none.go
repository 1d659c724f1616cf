//go:build nofence

package postgres

// fenceGroup numbers a group, and lets those of dead hosts pass. It is the control of the tests in
// which they must be refused: with it these tests must fail.
const fenceGroup = `WITH f AS (UPDATE hosts SET seq = $2::bigint WHERE hid = $1::bigint AND seq = $2::bigint - 1 RETURNING 1)
	SELECT 1 / count(*) FROM f`

// CheckSlot lets a group pass that writes to a slot which is not the host's.
const CheckSlot = "SELECT sqrt(count(*)) FROM slots WHERE slot = CAST(? AS BIGINT) AND hid = ?"
