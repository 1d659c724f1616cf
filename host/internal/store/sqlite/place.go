package sqlite

import (
	"encoding/binary"

	"skep/host/internal/swarm"
)

// Names of what holds bodies. They are part of what a sealed body is bound to,
// so they never change.
const (
	inTasks       = "tasks"
	inQueue       = "queue"
	inEvents      = "events"
	inHistory     = "history"
	inStates      = "states"
	inHeaders     = "headers"
	inInputs      = "inputs"
	inEnds        = "ends"
	inJournal     = "journal"
	inSubmissions = "submissions"
	inNotes       = "submission_notes"
	inDefinitions = "definitions"
	inLoaded      = "loaded"
	inOutbox      = "outbox"
	inBlobs       = "blobs"
	inNamers      = "namers"
	inKV          = "kv/"

	inGatewayState = "gateway_state"
)

// inBlobUses names in an export what has no body of its own.
const inBlobUses = "blob_uses"

// place is the task, or with an empty task the instance, that a body belongs
// to. A sealed body opens in its place and at its spot only, so rows of the
// file cannot take each other's place. Names are bound, not the numbers that
// stand for them in the file.
type place []byte

// spot is where in its place a body lies.
type spot struct {
	table string
	// name is the agent or the key it is of, if its table has such.
	name string
	seq  int64
}

func placeOf(k swarm.TaskKey) place {
	var p place
	for _, part := range []string{k.Tenant, k.Swarm, k.Instance, k.Task} {
		p = appendPart(p, part)
	}
	return p
}

// appendPart writes a part with its length: no two lists of parts are alike.
func appendPart(b []byte, part string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// bind renders a spot of the place.
func (p place) bind(at spot) []byte {
	b := make([]byte, 0, len(p)+len(at.table)+len(at.name)+20)
	b = appendPart(append(b, p...), at.table)
	return binary.AppendUvarint(appendPart(b, at.name), uint64(at.seq))
}

// submissionSpot is where a submission's digest lies in its instance.
func submissionSpot(door, key string) spot {
	return spot{inSubmissions, string(appendPart(appendPart(nil, door), key)), 0}
}

// noteSpot is where a submission's note lies in its instance.
func noteSpot(door, key string) spot {
	at := submissionSpot(door, key)
	at.table = inNotes
	return at
}

// kvPlace is where the values of a scope lie, and the table they are in.
func kvPlace(key swarm.TaskKey, scope swarm.KVScope) (place, string) {
	if scope.Kind != swarm.KVTask {
		key.Task = ""
	}
	return placeOf(key), inKV + string(scope.Kind) + "/" + normal(scope).Agent
}
