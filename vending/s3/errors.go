package s3

import (
	"context"
	"errors"
	"net"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"catalogd/internal/fault"
	"catalogd/vending"
)

// remedies are by the token service's error codes. Wire codes and the SDK's names differ for some.
var remedies = map[string]string{
	"AccessDenied":                     "check that the role trusts the server's identity, and the external id",
	"AccessDeniedException":            "check that the role trusts the server's identity, and the external id",
	"NoSuchEntity":                     "check the warehouse's roleArn: the role does not exist",
	"InvalidClientTokenId":             "check the server's own AWS keys: the access key is not known",
	"InvalidAccessKeyId":               "check the server's own AWS keys: the access key is not known",
	"SignatureDoesNotMatch":            "check the server's own AWS keys: the secret does not fit",
	"ExpiredToken":                     "the server's own AWS session has ended; renew it",
	"ExpiredTokenException":            "the server's own AWS session has ended; renew it",
	"ValidationError":                  "check the warehouse's roleArn, and that sessionSeconds is not longer than the role's maximum",
	"RegionDisabledException":          "the token service is switched off in the warehouse's region",
	"PackedPolicyTooLarge":             "the table's location is too long for a session policy; shorten the warehouse's base location",
	"PackedPolicyTooLargeException":    "the table's location is too long for a session policy; shorten the warehouse's base location",
	"MalformedPolicyDocument":          "the store refuses session policies; set stsUnavailable, then nothing is vended",
	"MalformedPolicyDocumentException": "the store refuses session policies; set stsUnavailable, then nothing is vended",
	"NotImplemented":                   "the store refuses session policies; set stsUnavailable, then nothing is vended",
}

// throttled are codes that a later try may not meet.
var throttled = map[string]bool{
	"Throttling": true, "ThrottlingException": true, "RequestLimitExceeded": true, "SlowDown": true,
	"ServiceUnavailable": true, "RequestTimeout": true, "RequestTimeoutException": true, "InternalFailure": true,
	"IDPCommunicationError": true,
}

// assumeError gives a token service's error its meaning here. The cause may name role and request, never a key.
func assumeError(err error, profile vending.Profile, s vending.Scope) error {
	var api smithy.APIError
	var status *smithyhttp.ResponseError
	code := 0
	if errors.As(err, &status) {
		code = status.HTTPStatusCode()
	}
	if errors.As(err, &api) {
		if remedy, ok := remedies[api.ErrorCode()]; ok {
			return fault.Wrap(fault.Internal, err, "the token service of warehouse %s refused role %s (%s): %s",
				s.WarehouseName(), profile.RoleARN, api.ErrorCode(), remedy)
		}
		if !throttled[api.ErrorCode()] && code != 0 && code < 500 {
			return fault.Wrap(fault.Internal, err, "the token service of warehouse %s refused role %s (%s)",
				s.WarehouseName(), profile.RoleARN, api.ErrorCode())
		}
		return fault.Wrap(fault.Busy, err, "the token service of warehouse %s is busy (%s); try again", s.WarehouseName(), api.ErrorCode())
	}
	var network net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) || code >= 500 {
		return fault.Wrap(fault.Busy, err, "the token service of warehouse %s does not answer; try again, or check stsEndpoint and endpoint", s.WarehouseName())
	}
	return fault.Wrap(fault.Internal, err, "the token service of warehouse %s gave no credentials; check stsEndpoint and roleArn", s.WarehouseName())
}
