package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// perLine is how many bytes of a description stand in one line.
const perLine = 24

// pythonMessages writes a module that has the classes of a file's messages, by the
// file's own description: the library makes the rest when it is imported.
func pythonMessages(about *descriptorpb.FileDescriptorProto, path string) error {
	bare := proto.CloneOf(about)
	bare.SourceCodeInfo, bare.Options = nil, nil
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(bare)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "\"\"\"The messages of %s. Made by go generate in abi/pluginpb; do not edit.\"\"\"\n\n", about.GetName())
	b.WriteString("from google.protobuf import descriptor_pool, message_factory\n\n_FILE = descriptor_pool.DescriptorPool().AddSerializedFile(\n")
	for part := range slices.Chunk(raw, perLine) {
		b.WriteString("    b\"")
		for _, c := range part {
			fmt.Fprintf(&b, "\\x%02x", c)
		}
		b.WriteString("\"\n")
	}
	b.WriteString(")\n\n")
	for _, m := range about.MessageType {
		fmt.Fprintf(&b, "%[1]s = message_factory.GetMessageClass(_FILE.message_types_by_name[\"%[1]s\"])\n", m.GetName())
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}
