package manage

import (
	"net/http"

	"catalogd/api"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// baseLocation is the property in which Polaris keeps a catalog's base; the domain has a field for it.
const baseLocation = "default-base-location"

// internalType is the only type of catalog: tables that this server keeps itself.
const internalType = "INTERNAL"

func (h *handlers) warehouseRows() []api.Endpoint {
	return []api.Endpoint{
		row(http.MethodGet, "/catalogs", "list-warehouses", listAll(h.service.ListWarehouses, warehousesList)),
		row(http.MethodPost, "/catalogs", "create-warehouse", h.createWarehouse),
		row(http.MethodGet, catalogRoute, "load-warehouse", load(named("catalog"), h.service.FindWarehouse, shown(newWarehouseAnswer))),
		row(http.MethodPut, catalogRoute, "update-warehouse", h.updateWarehouse),
		row(http.MethodDelete, catalogRoute, "drop-warehouse", drop(named("catalog"), h.service.DropWarehouse)),
		row(http.MethodGet, catalogRoute+"/dropped-tables", "list-dropped", load(named("catalog"), h.service.ListDropped, answerDropped)),
	}
}

type warehouseAnswer struct {
	Type string `json:"type"`
	Name string `json:"name"`
	entity
	Storage vending.Profile `json:"storageConfigInfo"`
}

func newWarehouseAnswer(w catalog.Warehouse) warehouseAnswer {
	properties := w.ShownProperties()
	properties[baseLocation] = w.Location
	return warehouseAnswer{
		Type: internalType, Name: w.Name, entity: newEntity(properties, w.CreatedAt, w.UpdatedAt, w.Version), Storage: w.Storage,
	}
}

// storageBody is Polaris' storageConfigInfo: what this server has, and what it must not ignore.
type storageBody struct {
	vending.Profile
	StorageName    string   `json:"storageName"`
	CurrentKMSKey  string   `json:"currentKmsKey"`
	AllowedKMSKeys []string `json:"allowedKmsKeys"`
}

// profile refuses settings whose silent loss would surprise: another identity than meant, or no right on the keys
// that a bucket is encrypted with.
func (b storageBody) profile() (vending.Profile, error) {
	if b.StorageName != "" {
		return b.Profile, fault.New(fault.BadRequest, "storageConfigInfo.storageName is not served: the server has one identity")
	}
	if b.CurrentKMSKey != "" || len(b.AllowedKMSKeys) > 0 {
		return b.Profile, fault.New(fault.BadRequest, "storageConfigInfo.currentKmsKey and allowedKmsKeys are not served")
	}
	if b.StorageType == "" {
		return b.Profile, missing("storageConfigInfo.storageType")
	}
	return b.Profile, nil
}

var warehousesList = listOf[catalog.Warehouse, warehouseAnswer]{
	"catalogs", newWarehouseAnswer, func(w catalog.Warehouse) string { return w.Name },
}

func (h *handlers) createWarehouse(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Catalog *struct {
			Type       string            `json:"type"`
			Name       string            `json:"name"`
			Properties map[string]string `json:"properties"`
			Storage    *storageBody      `json:"storageConfigInfo"`
			Connection any               `json:"connectionConfigInfo"`
		} `json:"catalog"`
	}
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	draft := body.Catalog
	switch {
	case draft == nil:
		return missing("catalog")
	case draft.Type != "" && draft.Type != internalType || draft.Connection != nil:
		return fault.New(fault.BadRequest, "a catalog of type %q, which another server keeps, is not served; type must be %s", draft.Type, internalType)
	case draft.Storage == nil:
		return missing("catalog.storageConfigInfo")
	case draft.Properties[baseLocation] == "":
		return missing("catalog.properties." + baseLocation)
	}
	storage, err := draft.Storage.profile()
	if err != nil {
		return err
	}
	location := draft.Properties[baseLocation]
	delete(draft.Properties, baseLocation)
	api.Annotate(r, draft.Name, draft.Name)
	made, err := h.service.CreateWarehouse(r.Context(), api.CallerOf(r), catalog.WarehouseDraft{
		Name: draft.Name, Location: location, Properties: draft.Properties, Storage: storage,
	})
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusCreated, newWarehouseAnswer(made))
}

func (h *handlers) updateWarehouse(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "catalog")
	if err != nil {
		return err
	}
	var body struct {
		updateBody
		Storage *storageBody `json:"storageConfigInfo"`
	}
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	update, err := body.update()
	if err != nil {
		return err
	}
	change := catalog.WarehouseChange{Update: update, Location: update.Properties[baseLocation]}
	delete(update.Properties, baseLocation)
	if body.Storage != nil {
		storage, err := body.Storage.profile()
		if err != nil {
			return err
		}
		change.Storage = &storage
	}
	updated, err := h.service.UpdateWarehouse(r.Context(), api.CallerOf(r), name, change)
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusOK, newWarehouseAnswer(updated))
}
