//! What is loaded in this process: each directory once, for as long as the process lives.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermes_engine_abi as abi;

use super::Catalog;
use crate::plugin::copies::{private_folder, sweep};
use crate::plugin::discover::DiscoverError;
use crate::plugin::entry::{Entry, Kind};
use crate::plugin::load::open::{self, OpenRequest};
use crate::plugin::load::{CreateTexts, LoadError, OpenError, Refusal};
use crate::plugin::module::{EngineModule, LibraryOrigin, Origin};

/// One directory's place. Whoever holds it loads, and the others wait.
type Place = Arc<Mutex<Option<EngineModule>>>;

static LOADED: Mutex<Option<HashMap<PathBuf, Place>>> = Mutex::new(None);

/// The engine that a general plugin has registered, by home folder: there is only one.
static REGISTERED: Mutex<Option<HashMap<PathBuf, Registrant>>> = Mutex::new(None);

#[derive(Clone)]
struct Registrant {
    engine: String,
    plugin: String,
    directory: PathBuf,
}

/// Loads an entry, or returns what is loaded already.
pub(super) fn load(catalog: &Catalog, entry: &Entry) -> Result<EngineModule, LoadError> {
    if let Some(refusal) = &entry.refusal {
        return Err(entry.error(refusal.clone()));
    }
    let directory = entry.directory.clone().unwrap_or_default();
    let place = lock(&LOADED)
        .get_or_insert_default()
        .entry(directory)
        .or_default()
        .clone();
    let mut place = lock(&place);
    if let Some(module) = place.as_ref() {
        if let Origin::Library(library) = module.origin() {
            catalog
                .check_pin(entry, &library.library, &library.library_sha256)
                .map_err(|error| entry.error(error))?;
        }
        if let Some(replaced) = module.replaced_on_disk() {
            tracing::warn!("{replaced}; {}", replaced.fix());
        }
        return Ok(module.clone());
    }
    let module = open_entry(catalog, entry).map_err(|refusal| entry.error(refusal))?;
    *place = Some(module.clone());
    // What is loaded is in use, and what is not may be old.
    sweep(&catalog.options.home.engine_cache_dir());
    Ok(module)
}

fn open_entry(catalog: &Catalog, entry: &Entry) -> Result<EngineModule, Refusal> {
    let tried = catalog.tried(entry)?;
    let name = entry
        .engine
        .clone()
        .or_else(|| tried.verdict.as_ref()?.name.clone());
    let name = name.unwrap_or_else(|| entry.name.clone());
    let texts = create_texts(catalog, entry, &name)?;
    let opened = {
        // Held over the call, so that two plugins cannot both be the first.
        let mut registered = lock(&REGISTERED);
        let registered = registered.get_or_insert_default();
        let home = catalog.options.home.path().to_owned();
        if entry.kind == Kind::General
            && let Some(first) = registered.get(&home)
            && Some(&first.directory) != entry.directory.as_ref()
        {
            return Err(Refusal::Discover(DiscoverError::SecondRegistration {
                engine: name,
                first: first.engine.clone(),
                by: first.plugin.clone(),
            }));
        }
        let promised = (entry.kind == Kind::Engine).then_some((name.as_str(), entry.promised_by));
        let opened = open::open(&OpenRequest {
            library: &tried.copy.library,
            has_entry: tried.copy.facts.has_entry && entry.kind == Kind::Engine,
            promised,
            texts: &texts,
            purpose: abi::FOR_TEMPLATE,
            taken: false,
            stage: &|_| {},
        })?;
        if entry.kind == Kind::General
            && let Some((module, _)) = &opened.engine
        {
            registered.insert(
                home,
                Registrant {
                    engine: module.name.clone(),
                    plugin: entry.name.clone(),
                    directory: entry.directory.clone().unwrap_or_default(),
                },
            );
        }
        opened
    };
    let Some((module, instance)) = opened.engine else {
        return Err(OpenError::RegisteredNothing.into());
    };
    for refused in &opened.refused {
        tracing::warn!(
            "plugin {} wants to register the engine {refused:?}, but has registered {:?} already; only one engine can be registered through plugins",
            entry.name,
            module.name
        );
    }
    let origin = Origin::Library(LibraryOrigin {
        directory: entry.directory.clone().unwrap_or_default(),
        library: entry.library.clone().unwrap_or_default(),
        loaded_copy: tried.copy.library,
        sha256: tried.copy.sha256,
        library_sha256: tried.copy.library_sha256,
        source: entry.source,
    });
    Ok(EngineModule::new(module, origin, instance))
}

/// What a plugin that makes its instance itself is told.
fn create_texts(catalog: &Catalog, entry: &Entry, name: &str) -> Result<CreateTexts, Refusal> {
    let data_dir = catalog.options.home.engine_data_dir(name);
    private_folder(&data_dir).map_err(|error| {
        Refusal::Copy(crate::plugin::copies::CopyError::Cache {
            folder: data_dir.clone(),
            what: "made",
            reason: error.to_string(),
        })
    })?;
    Ok(CreateTexts {
        config: catalog.options.config.engine_section(name).to_string(),
        data_dir: data_dir.to_string_lossy().into_owned(),
        plugin_dir: entry
            .directory
            .as_deref()
            .unwrap_or_else(|| std::path::Path::new(""))
            .to_string_lossy()
            .into_owned(),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
