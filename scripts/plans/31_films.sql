-- class: films
-- data: films

-- name: 3 relations, films of a rare keyword
select count(*), min(f.title) from films f, film_keywords fk, keywords k
where k.word = 'deldo-war-2452' and fk.keyword_id = k.id and f.id = fk.film_id;

-- name: 3 relations, documentaries of a country
select count(*), max(f.votes) from films f, kinds k, countries c
where f.kind_id = k.id and k.name = 'documentary' and f.country_id = c.id and c.code = 'no';

-- name: 4 relations, credits of the best films
select count(*), min(p.name) from films f, credits cr, people p, roles r
where f.rating > 9.8 and f.votes > 20000 and cr.film_id = f.id and p.id = cr.person_id and r.id = cr.role_id and r.name = 'director';

-- name: 4 relations, a company's young episodes
select count(*), min(f.title) from films f, film_companies fc, companies co, kinds k
where co.name like 'Shado%' and fc.company_id = co.id and f.id = fc.film_id and f.kind_id = k.id and k.name = 'episode' and f.year > 2015;

-- name: 4 relations, infos of a kind
select count(*), min(i.info) from films f, film_infos i, info_kinds ik, kinds k
where ik.name = 'location' and i.info_kind_id = ik.id and f.id = i.film_id and k.id = f.kind_id and k.name = 'game';

-- name: 5 relations, black and white westerns
select count(*), min(f.title), max(f.year) from films f, film_genres fg, genres g, film_infos i, info_kinds ik
where g.name = 'western' and fg.genre_id = g.id and f.id = fg.film_id and i.film_id = f.id and i.info_kind_id = ik.id
  and ik.name = 'colour' and f.year < 1960;

-- name: 5 relations, genre and keyword that go together
select count(*) from films f, film_genres fg, genres g, film_keywords fk, keywords k
where g.name = 'war' and fg.genre_id = g.id and f.id = fg.film_id and fk.film_id = f.id and fk.keyword_id = k.id
  and k.word like '%-war-%' and f.rating > 8;

-- name: 5 relations, genre and keyword that exclude each other
select count(*) from films f, film_genres fg, genres g, film_keywords fk, keywords k
where g.name = 'talk' and fg.genre_id = g.id and f.id = fg.film_id and fk.film_id = f.id and fk.keyword_id = k.id
  and k.word like '%-romance-%' and f.year between 1990 and 2000;

-- name: 5 relations, films of foreign companies
select count(*), min(co.name) from films f, film_companies fc, companies co, countries a, countries b
where fc.film_id = f.id and co.id = fc.company_id and a.id = f.country_id and b.id = co.country_id and a.code = 'ie' and b.code <> 'ie';

-- name: 5 relations, people of two films
select count(distinct p.id) from films f, credits a, people p, credits b, films g
where a.film_id = f.id and p.id = a.person_id and b.person_id = p.id and g.id = b.film_id
  and f.id = 4711 and g.year = 2001;

-- name: 6 relations, budgets of distributed films
select min(i.info), count(*) from films f, film_infos i, info_kinds ik, film_companies fc, company_roles cr, companies co
where ik.name = 'budget' and i.info_kind_id = ik.id and f.id = i.film_id and fc.film_id = f.id and fc.role_id = cr.id
  and cr.name = 'distribution' and co.id = fc.company_id and co.name like '%Pictures' and f.year > 2010;

-- name: 6 relations, sequels
select count(*), min(g.title) from films f, film_links l, link_kinds lk, films g, kinds k, countries c
where lk.name = 'follows' and l.link_kind_id = lk.id and f.id = l.film_id and g.id = l.linked_id
  and k.id = g.kind_id and k.name = 'film' and c.id = f.country_id and c.code in ('us', 'gb') and g.year < f.year;

-- name: 6 relations, women who direct abroad
select count(*), min(p.name) from people p, countries pc, credits cr, roles r, films f, countries fc
where p.gender = 'f' and pc.id = p.country_id and pc.code = 'se' and cr.person_id = p.id and r.id = cr.role_id
  and r.name = 'director' and f.id = cr.film_id and fc.id = f.country_id and fc.code = 'us';

-- name: 6 relations, the most frequent person
select f.year, count(*) from people p, credits cr, films f, kinds k, roles r, film_genres fg
where p.id = 1 and cr.person_id = p.id and f.id = cr.film_id and k.id = f.kind_id and r.id = cr.role_id and fg.film_id = f.id
  and r.name in ('actor', 'actress') group by f.year order by f.year;

-- name: 7 relations, voices of animations
select count(*), min(p.name), min(f.title) from films f, credits cr, people p, roles r, film_genres fg, genres g, countries c
where cr.film_id = f.id and p.id = cr.person_id and r.id = cr.role_id and r.name = 'actress' and cr.note = 'voice'
  and fg.film_id = f.id and g.id = fg.genre_id and g.name = 'animation' and c.id = f.country_id and c.code = 'jp';

-- name: 7 relations, composers of rated dramas
select min(p.name), count(*) from films f, credits cr, people p, roles r, film_genres fg, genres g, kinds k
where cr.film_id = f.id and p.id = cr.person_id and r.id = cr.role_id and r.name = 'composer' and fg.film_id = f.id
  and g.id = fg.genre_id and g.name = 'drama' and k.id = f.kind_id and k.name = 'film' and f.rating > 9 and p.born < 1950;

-- name: 7 relations, keywords of a company's films
select k.word, count(*) from companies co, film_companies fc, company_roles cr, films f, film_keywords fk, keywords k, kinds fkind
where co.id = 17 and fc.company_id = co.id and cr.id = fc.role_id and cr.name = 'production' and f.id = fc.film_id
  and fk.film_id = f.id and k.id = fk.keyword_id and fkind.id = f.kind_id and fkind.name <> 'episode'
group by k.word order by count(*) desc, k.word limit 10;

-- name: 8 relations, co-productions with a budget
select min(f.title), count(*) from films f, film_companies fc, companies co, countries c, company_roles cr, film_infos i, info_kinds ik, kinds k
where fc.film_id = f.id and fc.note = 'co-production' and co.id = fc.company_id and c.id = co.country_id and c.code = 'fr'
  and cr.id = fc.role_id and cr.name = 'production' and i.film_id = f.id and ik.id = i.info_kind_id and ik.name = 'budget'
  and k.id = f.kind_id and k.name = 'film';

-- name: 8 relations, actors who directed their film
select count(*), min(p.name) from films f, credits a, roles ar, people p, credits d, roles dr, kinds k, countries c
where a.film_id = f.id and ar.id = a.role_id and ar.name in ('actor', 'actress') and p.id = a.person_id and d.film_id = f.id
  and d.person_id = p.id and dr.id = d.role_id and dr.name = 'director' and k.id = f.kind_id and k.name = 'film'
  and c.id = f.country_id and f.year > 1990;

-- name: 8 relations, plots and locations
select count(*) from films f, film_infos pl, info_kinds plk, film_infos lo, info_kinds lok, film_genres fg, genres g, kinds k
where pl.film_id = f.id and plk.id = pl.info_kind_id and plk.name = 'plot' and lo.film_id = f.id and lok.id = lo.info_kind_id
  and lok.name = 'location' and lo.info like '%, it' and fg.film_id = f.id and g.id = fg.genre_id and g.name = 'horror' and k.id = f.kind_id;

-- name: 9 relations, remakes by other companies
select count(*), min(f.title) from films f, film_links l, link_kinds lk, films g, film_companies fa, companies ca, film_companies fb, companies cb, kinds k
where l.film_id = f.id and lk.id = l.link_kind_id and lk.name = 'remake of' and g.id = l.linked_id and fa.film_id = f.id
  and ca.id = fa.company_id and fb.film_id = g.id and cb.id = fb.company_id and ca.country_id <> cb.country_id
  and k.id = f.kind_id and k.name = 'film';

-- name: 9 relations, keyword, genre and company at once
select min(f.title), min(co.name), count(*) from films f, film_keywords fk, keywords kw, film_genres fg, genres g,
     film_companies fc, companies co, countries c, kinds k
where fk.film_id = f.id and kw.id = fk.keyword_id and kw.word like '%-crime-%' and fg.film_id = f.id and g.id = fg.genre_id
  and g.name = 'crime' and fc.film_id = f.id and co.id = fc.company_id and c.id = co.country_id and c.code = 'de'
  and k.id = f.kind_id and k.name in ('film', 'series') and f.year > 2005;

-- name: 10 relations, casts of sequels
select count(*), min(p.name) from films f, film_links l, link_kinds lk, films g, credits a, credits b, people p, roles ra, roles rb, kinds k
where l.film_id = f.id and lk.id = l.link_kind_id and lk.name = 'follows' and g.id = l.linked_id and a.film_id = f.id
  and b.film_id = g.id and p.id = a.person_id and b.person_id = p.id and ra.id = a.role_id and rb.id = b.role_id
  and ra.name = rb.name and k.id = f.kind_id;

-- name: 10 relations, a country's directors and their genres
select g.name, count(*) from people p, countries pc, credits cr, roles r, films f, countries c, film_genres fg, genres g, kinds k, film_infos i
where pc.id = p.country_id and pc.code = 'dk' and cr.person_id = p.id and r.id = cr.role_id and r.name = 'director'
  and f.id = cr.film_id and c.id = f.country_id and fg.film_id = f.id and g.id = fg.genre_id and k.id = f.kind_id
  and k.name = 'film' and i.film_id = f.id and i.info_kind_id = 3 group by g.name order by g.name;

-- name: 11 relations, films with everything
select count(*), min(f.title) from films f, kinds k, countries c, film_genres fg, genres g, film_companies fc, companies co, film_keywords fk, keywords kw,
     film_infos i, info_kinds ik
where k.id = f.kind_id and k.name = 'film' and c.id = f.country_id and c.code = 'es' and fg.film_id = f.id and g.id = fg.genre_id
  and g.name = 'comedy' and fc.film_id = f.id and co.id = fc.company_id and fk.film_id = f.id and kw.id = fk.keyword_id
  and i.film_id = f.id and ik.id = i.info_kind_id and ik.name = 'budget';

-- name: 12 relations, a person's films with their companies
select count(*), min(co.name) from people p, countries pc, credits cr, roles r, films f, kinds k, countries c, film_companies fc, companies co,
     company_roles cor, film_genres fg, genres g
where p.id between 100 and 110 and pc.id = p.country_id and cr.person_id = p.id and r.id = cr.role_id and f.id = cr.film_id
  and k.id = f.kind_id and c.id = f.country_id and fc.film_id = f.id and co.id = fc.company_id and cor.id = fc.role_id
  and cor.name = 'production' and fg.film_id = f.id and g.id = fg.genre_id and g.name in ('drama', 'comedy', 'thriller');

-- name: 13 relations, two linked films with casts and keywords
select count(*), min(f.title), min(g.title) from film_links l, link_kinds lk, films f, films g, kinds kf, kinds kg, credits a, people p, roles r,
     film_keywords fk, keywords kw, film_keywords gk, countries c
where lk.id = l.link_kind_id and lk.name = 'spin-off of' and f.id = l.film_id and g.id = l.linked_id and kf.id = f.kind_id
  and kg.id = g.kind_id and kg.name = 'film' and a.film_id = f.id and p.id = a.person_id and r.id = a.role_id
  and r.name = 'director' and fk.film_id = f.id and kw.id = fk.keyword_id and gk.film_id = g.id and gk.keyword_id = kw.id
  and c.id = f.country_id;

-- name: 14 relations, linked films of one genre
select count(*) from film_links l, link_kinds lk, films f, films g, kinds kf, kinds kg, countries cf, countries cg, film_genres fg, film_genres gg,
     genres ge, film_companies fc, companies co, company_roles cr
where lk.id = l.link_kind_id and lk.name in ('follows', 'remake of') and f.id = l.film_id and g.id = l.linked_id
  and kf.id = f.kind_id and kg.id = g.kind_id and cf.id = f.country_id and cg.id = g.country_id and cf.code = cg.code
  and fg.film_id = f.id and gg.film_id = g.id and gg.genre_id = fg.genre_id and ge.id = fg.genre_id and ge.name = 'drama'
  and fc.film_id = f.id and co.id = fc.company_id and cr.id = fc.role_id and cr.name = 'production';

-- name: 15 relations, rare country at both ends
select count(*), min(p.name) from films f, kinds k, countries c, film_companies fc, companies co, countries coc, company_roles cor,
     credits cr, people p, countries pc, roles r, film_genres fg, genres g, film_infos i, info_kinds ik
where k.id = f.kind_id and c.id = f.country_id and c.code = 'gr' and fc.film_id = f.id and co.id = fc.company_id
  and coc.id = co.country_id and coc.code = 'gr' and cor.id = fc.role_id and cr.film_id = f.id and p.id = cr.person_id
  and pc.id = p.country_id and r.id = cr.role_id and r.name = 'writer' and fg.film_id = f.id and g.id = fg.genre_id
  and i.film_id = f.id and ik.id = i.info_kind_id and ik.name = 'release';

-- name: 17 relations, all tables
select count(*), min(f.title) from films f, kinds k, countries c, film_genres fg, genres g, film_companies fc, companies co, company_roles cor,
     credits cr, people p, roles r, film_keywords fk, keywords kw, film_infos i, info_kinds ik, film_links l, link_kinds lk
where k.id = f.kind_id and k.name = 'film' and c.id = f.country_id and c.code = 'us' and fg.film_id = f.id and g.id = fg.genre_id
  and g.name = 'drama' and fc.film_id = f.id and co.id = fc.company_id and cor.id = fc.role_id and cor.name = 'distribution'
  and cr.film_id = f.id and p.id = cr.person_id and r.id = cr.role_id and r.name = 'actor' and fk.film_id = f.id
  and kw.id = fk.keyword_id and i.film_id = f.id and ik.id = i.info_kind_id and ik.name = 'location' and l.film_id = f.id
  and lk.id = l.link_kind_id;

-- name: outer joins, infos that may be absent
select count(*), count(b.info), count(lo.info) from films f join kinds k on k.id = f.kind_id
left join film_infos b on b.film_id = f.id and b.info_kind_id = 1 left join film_infos lo on lo.film_id = f.id and lo.info_kind_id = 6
join countries c on c.id = f.country_id where c.code = 'pl' and k.name = 'film';

-- name: semi-joins, people without credits abroad
select count(*) from people p join countries pc on pc.id = p.country_id where pc.code = 'fi'
  and exists (select 1 from credits cr where cr.person_id = p.id)
  and not exists (select 1 from credits cr join films f on f.id = cr.film_id where cr.person_id = p.id and f.country_id <> p.country_id);
