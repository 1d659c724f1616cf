package capability

import (
	"context"
	"errors"

	"skep/abi"
	"skep/host/internal/swarm"
)

func (o *ops) blobPut(_ context.Context, req []byte) ([]byte, *abi.Error) {
	var ask abi.BlobPutRequest
	if fault := decode(abi.OpBlobPut, req, &ask); fault != nil {
		return nil, fault
	}
	switch {
	case ask.Data == nil:
		return nil, abi.Errorf(abi.CodeInvalid, abi.OpBlobPut, "data", "blob.put: data is missing; it must be bytes as base64 with padding")
	case len(ask.Data) > abi.MaxBlob:
		return nil, abi.Errorf(abi.CodeLimit, abi.OpBlobPut, "size", "a blob of %d bytes, at most %d; put it in parts", len(ask.Data), abi.MaxBlob)
	}
	id, fault := o.turn.PutBlob(ask.Data)
	if fault != nil {
		return nil, fault
	}
	return encode(abi.OpBlobPut, abi.BlobPutResponse{SHA256: id.String()})
}

func (o *ops) blobGet(ctx context.Context, req []byte) ([]byte, *abi.Error) {
	var ask abi.BlobGetRequest
	if fault := decode(abi.OpBlobGet, req, &ask); fault != nil {
		return nil, fault
	}
	id, ok := swarm.ParseBlobID(ask.SHA256)
	if !ok {
		return nil, abi.Errorf(abi.CodeInvalid, abi.OpBlobGet, "sha256",
			"sha256 must be the 64 hexadecimal digits in lower case that blob.put has answered, not %.70q", ask.SHA256)
	}
	data, err := o.turn.Blob(ctx, id)
	switch {
	case errors.Is(err, swarm.ErrNotFound):
		return nil, abi.Errorf(abi.CodeNotFound, abi.OpBlobGet, "sha256", "there is no blob %s", id)
	case err != nil:
		return nil, storeError(ctx, abi.OpBlobGet)
	}
	return encode(abi.OpBlobGet, abi.BlobGetResponse{Data: data})
}
