package swarm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"skep/host/internal/swarm/slot"
)

// TurnID identifies a turn, the same on every attempt, and discloses nothing about it but its task's slot, with
// which it begins.
type TurnID = [32]byte

// labelTurn derives a [TurnID].
const labelTurn = "turn"

// turnID is the turn of a row of a task.
func (r *Runtime) turnID(rec Task, row int64) TurnID {
	id := deriveBytes(r.secret, rec, row, labelTurn)
	binary.BigEndian.PutUint16(id[:], uint16(SlotOf(rec.Key)))
	return id
}

// Undone returns which of some turns are still to be run, by the store: another host may have their tasks.
func (r *Runtime) Undone(ctx context.Context, turns []TurnID) (undone []TurnID, err error) {
	slots := map[slot.Slot]bool{}
	for _, id := range turns {
		slots[slot.Slot(binary.BigEndian.Uint16(id[:]))] = true
	}
	tasks, err := r.store.RunningTasks(ctx)
	if err != nil {
		return nil, fmt.Errorf("find turns that are still to be run: %w", err)
	}
	for _, one := range tasks {
		if !slots[SlotOf(one.TaskKey)] {
			continue
		}
		task, err := r.store.LoadQueue(ctx, one.TaskKey)
		if ctx.Err() != nil || errors.Is(err, ErrUnavailable) {
			return nil, fmt.Errorf("find turns that are still to be run: task %q: %w", one.Task, err)
		}
		if err != nil { // it has gone, or cannot be read: no host runs it
			continue
		}
		for _, row := range task.Rows {
			if id := r.turnID(task.Task, row.N); slices.Contains(turns, id) {
				undone = append(undone, id)
			}
		}
	}
	return undone, nil
}
