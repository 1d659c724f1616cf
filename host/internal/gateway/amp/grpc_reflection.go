package amp

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"skep/host/internal/gateway/amp/message"
	"skep/spec/gateways/amp/amppb"
)

// newReflection describes the services of a server, for clients that have no amp.proto.
func newReflection(s reflection.ServiceInfoProvider) grpc_reflection_v1.ServerReflectionServer {
	return reflection.NewServerV1(reflection.ServerOptions{Services: s, DescriptorResolver: describedServices()})
}

// aliasFile is the name of a file with the service under its other name.
const aliasFile = "aip.proto"

// describedServices are the files of the services, and those that they import. It panics if amp.proto
// cannot be described, which the build decides.
func describedServices() *protoregistry.Files {
	files := new(protoregistry.Files)
	var add func(protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if _, err := files.FindFileByPath(f.Path()); err == nil {
			return
		}
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		if err := files.RegisterFile(f); err != nil {
			panic(err)
		}
	}
	for _, f := range []protoreflect.FileDescriptor{amppb.File_amp_proto, grpc_health_v1.File_grpc_health_v1_health_proto, grpc_reflection_v1.File_grpc_reflection_v1_reflection_proto} {
		add(f)
	}
	alias := protodesc.ToFileDescriptorProto(amppb.File_amp_proto)
	alias.Name, alias.Package, alias.Dependency = proto.String(aliasFile), proto.String("aip.v1"), []string{amppb.File_amp_proto.Path()}
	alias.MessageType = nil
	made, err := protodesc.NewFile(alias, files)
	if err != nil {
		panic(err)
	}
	add(made)
	return files
}

// grpcHealth serves grpc.health.v1.Health, whose Check asks for no credential: the state of the host.
type grpcHealth struct {
	grpc_health_v1.UnimplementedHealthServer
	g *Gateway
}

// Check implements [grpc_health_v1.HealthServer].
func (h grpcHealth) Check(_ context.Context, in *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	switch in.GetService() {
	case "", services[message.AMP], services[message.AIP]:
	default:
		return nil, status.Error(codes.NotFound, "there is no such service")
	}
	out := &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}
	if !h.g.Health().OK {
		out.Status = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return out, nil
}
