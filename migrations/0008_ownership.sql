-- +goose Up
-- Who made a warehouse, a namespace, a table or a view owns it. No foreign key: a principal that is dropped would have to
-- be taken out of all that it ever made; an id that nobody has is nobody's, and ids never come again. What was there
-- before has no owner. Only additions: the binary before this step runs beside it, and makes things without an owner.
ALTER TABLE warehouses ADD COLUMN owner_id uuid;
ALTER TABLE namespaces ADD COLUMN owner_id uuid;
ALTER TABLE tables ADD COLUMN owner_id uuid;
CREATE INDEX warehouses_owner ON warehouses (owner_id) WHERE owner_id IS NOT NULL;
CREATE INDEX namespaces_owner ON namespaces (owner_id) WHERE owner_id IS NOT NULL;
CREATE INDEX tables_owner ON tables (owner_id, namespace_id) WHERE owner_id IS NOT NULL;

-- +goose Down
SELECT 1;
