//go:build !nofence

package postgres

// fenceGroup numbers a group. Without a row it divides by zero, and the group is undone.
const fenceGroup = `WITH f AS (UPDATE hosts SET seq = $2::bigint WHERE hid = $1::bigint AND seq = $2::bigint - 1 AND NOT dead RETURNING 1)
	SELECT 1 / count(*) FROM f`

// CheckSlot ends a group that writes to a slot which is not the host's: the square root of a negative number is an
// error, without an answer that must be waited for.
const CheckSlot = "SELECT sqrt(count(*) - 1) FROM slots WHERE slot = CAST(? AS BIGINT) AND hid = ?"
