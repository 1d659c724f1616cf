package skep

import "skep/sdk/go/internal/abi"

// MaxBlob bounds one blob, in bytes.
const MaxBlob = abi.MaxBlob

// BlobPut keeps bytes that are too large for a message or a value, at most
// [MaxBlob], and returns their address, with which any agent of the tenant
// reads them by [Turn.BlobGet]. The turn sees them at once, others when
// the turn has ended well. They stay as long as a task does that has put them. A
// turn may put 64 blobs and 16 MiB; what is more is [Limit].
func (t *Turn) BlobPut(data []byte) (sha256 string, err error) {
	if data == nil {
		data = []byte{}
	}
	var rsp abi.BlobPutResponse
	err = t.Call(OpBlobPut, abi.BlobPutRequest{Data: data}, &rsp)
	return rsp.SHA256, err
}

// BlobGet returns a blob of the tenant by its address. The error is [NotFound]
// when there is none.
func (t *Turn) BlobGet(sha256 string) ([]byte, error) {
	var rsp abi.BlobGetResponse
	err := t.Call(OpBlobGet, abi.BlobGetRequest{SHA256: sha256}, &rsp)
	return rsp.Data, err
}
