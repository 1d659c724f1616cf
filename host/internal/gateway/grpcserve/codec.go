package grpcserve

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Bytes is a message whose methods read and write its bytes themselves.
type Bytes interface {
	WireBytes() []byte
	SetWireBytes([]byte)
}

// BytesCodec makes a server hand over and take [Bytes] as they are. Other messages are those of
// protobuf.
func BytesCodec() grpc.ServerOption {
	return grpc.ForceServerCodecV2(bytesCodec{encoding.GetCodecV2(proto.Name)})
}

// bytesCodec is the library's codec, and knows [Bytes].
type bytesCodec struct{ encoding.CodecV2 }

// Marshal implements [encoding.CodecV2].
func (c bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	if m, is := v.(Bytes); is {
		return mem.BufferSlice{mem.SliceBuffer(m.WireBytes())}, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements [encoding.CodecV2].
func (c bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, is := v.(Bytes); is {
		m.SetWireBytes(data.Materialize())
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}
