package swarm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"skep/abi"
)

// BlobID is the sha256 of a blob's bytes, its address within its tenant.
type BlobID [sha256.Size]byte

// String returns 64 hexadecimal digits in lower case.
func (id BlobID) String() string { return hex.EncodeToString(id[:]) }

// ParseBlobID reads the form that String returns, and no other.
func ParseBlobID(text string) (id BlobID, ok bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(id) {
		return BlobID{}, false
	}
	copy(id[:], raw)
	return id, id.String() == text
}

// Blob is a blob that a [Mutation] adds to its task. The tenant may have it already.
type Blob struct {
	ID   BlobID
	Data []byte
}

// stagedBlobs are the uncommitted blobs of a turn, in the order of their calls.
type stagedBlobs struct {
	list  []Blob
	bytes int64
}

func (b *stagedBlobs) find(id BlobID) ([]byte, bool) {
	for _, has := range b.list {
		if has.ID == id {
			return has.Data, true
		}
	}
	return nil, false
}

// add returns the set with one more blob, and leaves b unchanged.
func (b stagedBlobs) add(id BlobID, data []byte) stagedBlobs {
	return stagedBlobs{append(b.list[:len(b.list):len(b.list)], Blob{id, data}), b.bytes + int64(len(data))}
}

// PutBlob stages a blob and takes its bytes over. A refusal is LIMIT.
func (t *Turn) PutBlob(data []byte) (BlobID, *abi.Error) {
	id := BlobID(sha256.Sum256(data))
	if _, put := t.blobs.find(id); put {
		return id, nil
	}
	more := t.blobs.add(id, data)
	switch {
	case t.replay != nil: // an earlier attempt decided it
	case len(more.list) > abi.MaxBlobs:
		return id, abi.Errorf(abi.CodeLimit, abi.OpBlobPut, "blobs", "a turn may put %d blobs", abi.MaxBlobs)
	case more.bytes > abi.MaxBlobBytes:
		return id, abi.Errorf(abi.CodeLimit, abi.OpBlobPut, "bytes", "the blobs of the turn would have %d bytes, at most %d", more.bytes, abi.MaxBlobBytes)
	default:
		if fault := t.checkStorageBytes(abi.OpBlobPut, more.bytes); fault != nil {
			return id, fault
		}
	}
	if !t.buffer.hold(int64(len(data)), t.replay != nil) {
		return id, TurnBuffersFault(abi.OpBlobPut)
	}
	t.blobs = more
	return id, nil
}

// dropBlobs drops the staged blobs of a turn that is repeated.
func (t *Turn) dropBlobs() {
	t.buffer.ReleaseBytes(t.blobs.bytes)
	t.blobs = stagedBlobs{}
}

// Blob returns a staged blob, else the tenant's. It returns [ErrNotFound] for neither.
func (t *Turn) Blob(ctx context.Context, id BlobID) ([]byte, error) {
	if data, put := t.blobs.find(id); put {
		return data, nil
	}
	data, err := t.rt.store.Blob(ctx, t.task.key.Tenant, id)
	if err == nil && BlobID(sha256.Sum256(data)) != id {
		return nil, errors.New("a blob is not what its address says")
	}
	return data, err
}
