-- Films: keys, and an index for each foreign key.
create table kinds (id integer primary key, name text not null);
create table countries (id integer primary key, code text not null);
create table genres (id integer primary key, name text not null);
create table company_roles (id integer primary key, name text not null);
create table roles (id integer primary key, name text not null);
create table info_kinds (id integer primary key, name text not null);
create table link_kinds (id integer primary key, name text not null);
create table films (id integer primary key, title text not null, kind_id integer not null, country_id integer not null,
    year integer, minutes integer, rating numeric(3, 1), votes integer);
create table people (id integer primary key, name text not null, gender text, born integer, country_id integer not null);
create table film_genres (film_id integer, genre_id integer, primary key (film_id, genre_id));
create table companies (id integer primary key, name text not null, country_id integer not null);
create table film_companies (id integer primary key, film_id integer not null, company_id integer not null,
    role_id integer not null, note text);
create table credits (id integer primary key, film_id integer not null, person_id integer not null,
    role_id integer not null, place integer, note text);
create table keywords (id integer primary key, word text not null);
create table film_keywords (film_id integer, keyword_id integer, primary key (film_id, keyword_id));
create table film_infos (id integer primary key, film_id integer not null, info_kind_id integer not null, info text not null);
create table film_links (id integer primary key, film_id integer not null, linked_id integer not null,
    link_kind_id integer not null);
create index films_kind on films (kind_id);
create index films_country on films (country_id);
create index people_country on people (country_id);
create index film_genres_genre on film_genres (genre_id);
create index companies_country on companies (country_id);
create index film_companies_film on film_companies (film_id);
create index film_companies_company on film_companies (company_id);
create index film_companies_role on film_companies (role_id);
create index credits_film on credits (film_id);
create index credits_person on credits (person_id);
create index credits_role on credits (role_id);
create index film_keywords_keyword on film_keywords (keyword_id);
create index film_infos_film on film_infos (film_id);
create index film_infos_kind on film_infos (info_kind_id);
create index film_links_film on film_links (film_id);
create index film_links_linked on film_links (linked_id);
create index film_links_kind on film_links (link_kind_id);
