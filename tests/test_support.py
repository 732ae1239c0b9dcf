"""The databases that tests get are empty, real, and of both kinds."""

from sqlalchemy import create_engine, inspect, text


def test_each_test_gets_an_empty_database(database_url: str) -> None:
    engine = create_engine(database_url)
    with engine.begin() as connection:
        assert inspect(connection).get_table_names() == []
        connection.execute(text("CREATE TABLE left_behind (x INTEGER)"))
    engine.dispose()


def test_no_test_sees_the_tables_of_another(database_url: str) -> None:
    engine = create_engine(database_url)
    with engine.begin() as connection:
        assert inspect(connection).get_table_names() == []
    engine.dispose()
