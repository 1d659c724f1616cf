// Command generate owns the making of Go code from a .proto file, with the
// generators that go.mod pins, so that no protoc has to be installed, and where they are
// wanted a copy of it for another module and the messages for Python. It must not know what the file
// describes.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) != 2 && len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: generate FILE.proto [PYTHON-FILE COPY-DIRECTORY [FILE-TO-COPY…]]")
		os.Exit(2)
	}
	python := ""
	if len(os.Args) > 2 {
		python = os.Args[2]
	}
	made, err := generate(context.Background(), os.Args[1], python)
	if err == nil && python != "" {
		err = duplicate(os.Args[3], append(made, os.Args[4:]...))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// generate makes the messages and the services of a file in Go, beside it, and the
// messages in Python if that has a name.
func generate(ctx context.Context, name, python string) (made []string, err error) {
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{}), SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(ctx, name)
	if err != nil {
		return nil, err
	}
	about := protoutil.ProtoFromFileDescriptor(files[0])
	if python != "" {
		if err := pythonMessages(about, python); err != nil {
			return nil, err
		}
	}
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{name}, Parameter: proto.String("paths=source_relative"),
		ProtoFile: append(imported(files[0]), about),
	})
	if err != nil {
		return nil, err
	}
	for _, tool := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		names, err := run(ctx, tool, request)
		if err != nil {
			return nil, err
		}
		made = append(made, names...)
	}
	return made, nil
}

// imported are the files that a file imports, each after those that it imports itself.
func imported(of protoreflect.FileDescriptor) (list []*descriptorpb.FileDescriptorProto) {
	for i := range of.Imports().Len() {
		file := of.Imports().Get(i).FileDescriptor
		list = append(append(list, imported(file)...), protoutil.ProtoFromFileDescriptor(file))
	}
	return list
}

// duplicate copies files to a directory.
func duplicate(dir string, names []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run asks one generator and writes what it makes.
func run(ctx context.Context, tool string, request []byte) (made []string, err error) {
	cmd := exec.CommandContext(ctx, "go", "tool", tool)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(request), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	if response.Error != nil {
		return nil, fmt.Errorf("%s: %s", tool, response.GetError())
	}
	for _, f := range response.File {
		if err := os.WriteFile(filepath.FromSlash(f.GetName()), []byte(f.GetContent()), 0o644); err != nil {
			return nil, err
		}
		made = append(made, f.GetName())
	}
	return made, nil
}
