package manage

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"catalogd/api"
	"catalogd/catalog"
)

// droppedAnswer is a dropped table or view: what it takes to register it again, and the job that removes its files.
type droppedAnswer struct {
	Kind             catalog.Kind      `json:"kind"`
	Namespace        catalog.Namespace `json:"namespace"`
	Name             string            `json:"name"`
	UUID             string            `json:"uuid"`
	Location         string            `json:"location"`
	MetadataLocation string            `json:"metadata_location"`
	DroppedAt        time.Time         `json:"dropped_at"`
	PurgeRequested   bool              `json:"purge_requested"`
	Unregistered     bool              `json:"unregistered"`
	PurgeJob         string            `json:"purge_job,omitempty"`
}

func answerDropped(w http.ResponseWriter, r *http.Request, dropped []catalog.DroppedListed) error {
	answer := struct {
		Dropped []droppedAnswer `json:"dropped"`
	}{[]droppedAnswer{}}
	for _, d := range dropped {
		a := droppedAnswer{
			Kind: d.Record.Kind, Namespace: d.Record.Ident.Namespace, Name: d.Record.Ident.Name, UUID: d.Record.UUID.String(),
			Location: d.Record.Location, MetadataLocation: d.Record.MetadataLocation, DroppedAt: d.DroppedAt,
			PurgeRequested: d.PurgeRequested, Unregistered: d.Unregistered,
		}
		if d.PurgeJob != uuid.Nil {
			a.PurgeJob = d.PurgeJob.String()
		}
		answer.Dropped = append(answer.Dropped, a)
	}
	return api.JSON(w, r, http.StatusOK, answer)
}
