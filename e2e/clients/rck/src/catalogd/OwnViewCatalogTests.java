package catalogd;

import java.util.Map;
import java.util.UUID;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.view.ViewCatalogTests;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;

/** Iceberg's tests of views on a catalog that holds nothing else. */
public class OwnViewCatalogTests extends ViewCatalogTests<RESTCatalog> {
  private static RESTCatalog catalog;

  private final String folder = UUID.randomUUID().toString();

  @BeforeAll
  static void connect() {
    catalog = Client.connect("own", Map.of());
  }

  @AfterAll
  static void close() throws Exception {
    catalog.close();
  }

  @BeforeEach
  void empty() {
    Client.empty(catalog, Namespace.empty());
  }

  @Override
  protected RESTCatalog catalog() {
    return catalog;
  }

  @Override
  protected Catalog tableCatalog() {
    return catalog;
  }

  @Override
  protected String viewLocation(String... path) {
    return Client.location(super.viewLocation(path), folder, String.join("/", path));
  }

  @Override
  protected boolean requiresNamespaceCreate() {
    return true;
  }

  @Override
  protected boolean supportsServerSideRetry() {
    return true;
  }
}
